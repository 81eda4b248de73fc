/* Calls small functions for ever and checks every answer; on SIGTERM says what it found.
 *
 * steady [files|memory]: before it is ready it leaves itself no free file descriptor, or no
 * address space.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static volatile sig_atomic_t stop;

static void on_term(int signal) {
  (void)signal;
  stop = 1;
}

__attribute__((noinline)) unsigned steady_mix(unsigned x) {
  x ^= x << 13;
  x ^= x >> 17;
  x ^= x << 5;
  return x;
}

__attribute__((noinline)) unsigned steady_step(unsigned x, unsigned n) {
  return steady_mix(x) + n;
}

static unsigned expected(unsigned x, unsigned n) {
  x ^= x << 13;
  x ^= x >> 17;
  x ^= x << 5;
  return x + n;
}

static void limit(int what, rlim_t amount) {
  struct rlimit r = {amount, amount};
  if (setrlimit(what, &r)) {
    perror("setrlimit");
    exit(3);
  }
}

/* The ready file must appear when the limit is on already: make it aside, rename it after. */
static void ready(int argc, char **argv) {
  const char *path = getenv("READY_FILE");
  char aside[4096];
  snprintf(aside, sizeof aside, "%s.aside", path);
  int fd = open(aside, O_CREAT | O_WRONLY, 0644);
  if (fd < 0) {
    perror(aside);
    exit(3);
  }
  close(fd);
  if (argc > 1 && !strcmp(argv[1], "files"))
    limit(RLIMIT_NOFILE, 3);
  if (argc > 1 && !strcmp(argv[1], "memory"))
    limit(RLIMIT_AS, 4096);
  if (rename(aside, path)) {
    perror(path);
    exit(3);
  }
}

int main(int argc, char **argv) {
  struct sigaction action = {.sa_handler = on_term};
  sigaction(SIGTERM, &action, NULL);
  if (!getenv("READY_FILE")) {
    fputs("READY_FILE is not set\n", stderr);
    return 3;
  }
  /* stdio's buffer must exist before there is no memory left. */
  printf("steady: started\n");
  fflush(stdout);
  ready(argc, argv);

  unsigned x = 1, wrong = 0;
  unsigned long rounds = 0;
  while (!stop) {
    unsigned next = steady_step(x, (unsigned)rounds);
    wrong += next != expected(x, (unsigned)rounds);
    x = next ? next : 1;
    rounds++;
  }
  printf("steady: %u wrong\n", wrong);
  return wrong != 0;
}
