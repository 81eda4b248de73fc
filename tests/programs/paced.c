/* A thousand calls, then a millisecond of rest, until SIGTERM: slow enough that no ring overflows. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t stop;

static void on_term(int signal) {
  (void)signal;
  stop = 1;
}

__attribute__((noinline)) unsigned paced_inner(unsigned x) {
  x ^= x << 13;
  x ^= x >> 17;
  return x ^ x << 5;
}

__attribute__((noinline)) unsigned paced_outer(unsigned x, unsigned n) {
  return paced_inner(x) + n;
}

int main(void) {
  struct sigaction action = {.sa_handler = on_term};
  sigaction(SIGTERM, &action, NULL);
  const char *ready = getenv("READY_FILE");
  int fd = ready ? open(ready, O_CREAT | O_WRONLY, 0644) : -1;
  if (fd < 0) {
    fputs("READY_FILE cannot be made\n", stderr);
    return 3;
  }
  close(fd);
  unsigned x = 1, wrong = 0;
  while (!stop) {
    for (unsigned n = 0; n < 1000; n++) {
      unsigned y = x;
      y ^= y << 13;
      y ^= y >> 17;
      y ^= y << 5;
      x = paced_outer(x, n);
      wrong += x != y + n;
      if (!x)
        x = 1;
    }
    struct timespec rest = {0, 1000000};
    nanosleep(&rest, NULL);
  }
  printf("paced: %u wrong\n", wrong);
  return wrong != 0;
}
