/* Claims to carry a table of 1 TiB. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SIZE (1ul << 40)

int main(void) {
  int fd = memfd_create("hopscope-code", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, SIZE))
    return 3;
  unsigned char *arena = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (arena == MAP_FAILED)
    return 4;
  uint32_t version = 4, patched = 2;
  uint64_t json = SIZE - 64;
  memcpy(arena, "hopsARNA", 8);
  memcpy(arena + 8, &version, 4);
  memcpy(arena + 12, &patched, 4);
  memcpy(arena + 16, &json, 8);
  if (fclose(fopen(getenv("READY_FILE"), "w")))
    return 5;
  for (;;)
    pause();
}
