/* Waits within a call of `measured`. Its stack pointer lies low in a page: below it, in the same page, lies an old
 * return address into `measured_deep`; the one into `measured` lies pages above. */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096
/* Of its page: as much below it as measured_deep takes, and more. */
#define WITHIN_PAGE 3072

static volatile char *volatile touched;

__attribute__((noinline)) static void touch(char *bytes) { touched = bytes; }

/* Its return address lies below the red zone of who called it. */
__attribute__((noinline)) void measured_deep(void) {
  char room[512];
  touch(room);
  touched[0] = 1;
}

/* Needs no stack, in contrast to libc's. */
static long system_call(long nr, long a, long b, long c, long d) {
  register long fourth __asm__("r10") = d;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(fourth)
                   : "rcx", "r11", "memory");
  return result;
}

static sigset_t usr1;
static long signals;

__attribute__((noinline)) static void hold(const char *line, long bytes) {
  uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
  char *room = __builtin_alloca(PAGE + frame % PAGE + PAGE - WITHIN_PAGE);
  touch(room);
  measured_deep();
  system_call(SYS_write, 1, (long)line, bytes, 0);
  signals += system_call(SYS_rt_sigtimedwait, (long)&usr1, 0, 0, 8) == SIGUSR1;
}

__attribute__((noinline)) long measured(const char *line, long bytes) {
  hold(line, bytes);
  return ++signals;
}

int main(void) {
  int signal;
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  sigprocmask(SIG_BLOCK, &usr1, NULL);
  close(open(getenv("READY_FILE"), O_CREAT | O_WRONLY, 0600));
  if (sigwait(&usr1, &signal))
    return 1;
  for (int round = 1;; round++) {
    char line[32];
    measured(line, snprintf(line, sizeof line, "round %d\n", round));
  }
}
