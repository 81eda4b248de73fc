/* Forbids itself all system calls by Syscall User Dispatch, from the start ("at-once") or when a line on stdin says "on",
 * until one says "off", and calls `dispatched_work` meanwhile. Its one thread makes none then: a child talks. Ends with
 * stdin. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* linux/prctl.h, since 5.11 */
#define SYSCALL_USER_DISPATCH 59
enum { ALLOW, BLOCK };

static struct {
  volatile int wanted, is_on, over;
} *shared;
static volatile char selector = ALLOW;
static volatile long added = 1;

__attribute__((noinline)) long dispatched_work(long i) {
  return 2 * i + added;
}

static int talk(void) {
  char line[16];
  while (fgets(line, sizeof line, stdin)) {
    shared->wanted = !strcmp(line, "on\n");
    while (shared->is_on != shared->wanted)
      if (shared->over)
        return 1;
    fputs(line, stdout);
    fflush(stdout);
  }
  shared->over = 1;
  return 0;
}

static int dispatch(int on) {
  selector = ALLOW;
  if (prctl(SYSCALL_USER_DISPATCH, on, 0L, 0L, on ? &selector : NULL)) {
    shared->over = 1;
    return 0;
  }
  if (on)
    selector = BLOCK;
  shared->is_on = on;
  return 1;
}

int main(int argc, char **argv) {
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED)
    return 77;
  shared->wanted = argc > 1 && !strcmp(argv[1], "at-once");
  switch (fork()) {
  case -1:
    return 77;
  case 0:
    return talk();
  }
  long wrong = 0;
  for (long i = 0; !shared->over; i++) {
    wrong += dispatched_work(i) != 2 * i + 1;
    if (shared->is_on != shared->wanted && !dispatch(shared->wanted))
      return 77;
  }
  if (!dispatch(0) || wait(NULL) < 0)
    return 77;
  return wrong != 0;
}
