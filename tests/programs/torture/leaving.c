/* Large functions beside more memory than is searched for references while a process stands still:
 * what is copied of them has to stay. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MEMORY (32 << 20)
/* 64 KiB each. */
#define LARGE(n) void large_##n(void) { __asm__ volatile(".rept 6550\n\tmovabs $1, %%rax\n\t.endr" ::: "rax"); }
#define EIGHT(n) LARGE(n##0) LARGE(n##1) LARGE(n##2) LARGE(n##3) LARGE(n##4) LARGE(n##5) LARGE(n##6) LARGE(n##7)
EIGHT(0) EIGHT(1) EIGHT(2) EIGHT(3) EIGHT(4) EIGHT(5) EIGHT(6) EIGHT(7)
EIGHT(8) EIGHT(9) EIGHT(10) EIGHT(11) EIGHT(12) EIGHT(13) EIGHT(14) EIGHT(15)

int main(void) {
  char *memory = malloc(MEMORY);
  if (!memory)
    return 1;
  memset(memory, 1, MEMORY);
  const char *path = getenv("READY_FILE");
  FILE *file = path ? fopen(path, "w") : NULL;
  if (file)
    fclose(file);
  for (;;)
    pause();
}
