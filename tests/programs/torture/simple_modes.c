/* One thread that computes, sleeps, or makes processes. */
#define _GNU_SOURCE
#include "torture.h"
#include <errno.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

unsigned long spinning(unsigned long *rounds) {
  unsigned long wrong = 0;
  for (unsigned seed = 0; !stop; seed = (seed + 1) % SEEDS, ++*rounds)
    wrong += work(seed) != expected[seed];
  return wrong;
}

unsigned long sleeping(unsigned long *rounds) {
  unsigned long wrong = 0;
  for (unsigned seed = 0; !stop; seed = (seed + 1) % SEEDS, ++*rounds) {
    struct timespec pause = {0, 500000};
    wrong += work(seed) != expected[seed];
    wrong += nanosleep(&pause, NULL) && !stop;
  }
  return wrong;
}

static int wait_for(pid_t pid) {
  int status;
  pid_t got;
  /* Only SIGTERM has a handler. */
  while ((got = waitpid(pid, &status, __WALL)) < 0 && errno == EINTR && stop)
    ;
  return got == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* By libc's fork and by the bare system call in turn; the child computes and forks once more. */
unsigned long forking(unsigned long *rounds) {
  unsigned long wrong = 0;
  for (unsigned seed = 0; !stop; seed = (seed + 1) % SEEDS, ++*rounds) {
    pid_t pid = seed & 1 ? fork() : (pid_t)syscall(SYS_fork);
    if (pid == 0) {
      unsigned bad = work(seed) != expected[seed];
      pid_t grandchild = fork();
      if (grandchild == 0)
        _exit(work(seed) != expected[seed]);
      _exit((int)bad + 2 * (grandchild < 0 || wait_for(grandchild) != 0));
    }
    wrong += pid < 0 || wait_for(pid) != 0;
    wrong += work(seed) != expected[seed];
  }
  return wrong;
}
