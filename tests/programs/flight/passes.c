/* Passes of a data path, numbered, until SIGTERM or the end of its input: pass() calls look() for
 * each packet of a batch of four, then leaves by a jump to done(). A line on stdin asks for more
 * than that; each is answered on stdout when it is over:
 *
 *   slow US     the next pass takes so many microseconds longer, in its second look()
 *   run N       N passes as fast as they go
 *   rest N      N passes, and at least 100 us after each, as without commands
 *   fork        a child makes 1,000 passes and exits
 *
 * An answer holds how many passes there were, and the number of the slow one.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t stop;
static unsigned long sum, passes, slow_ns, wrong;

static void on_term(int signal) {
  (void)signal;
  stop = 1;
}

static unsigned long now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ul + t.tv_nsec;
}

__attribute__((noinline)) unsigned long look(unsigned long pass, unsigned long packet) {
  if (slow_ns && packet == 1) {
    unsigned long until = now_ns() + slow_ns;
    slow_ns = 0;
    while (now_ns() < until)
      ;
  }
  return pass ^ packet << 8;
}

__attribute__((noinline)) unsigned long done(unsigned long seen) {
  sum += seen;
  return seen;
}

__attribute__((noinline)) unsigned long pass(unsigned long number) {
  unsigned long seen = 0;
  for (unsigned long packet = 0; packet < 4; packet++)
    seen += look(number, packet);
  return done(seen);
}

/* A call of a measured function that is in no pass. */
__attribute__((noinline)) void idle(void) {
  __asm__ volatile("nop; nop; nop; nop; nop; nop; nop; nop");
}

static void make_pass(void) {
  unsigned long number = ++passes, expected = 0;
  for (unsigned long packet = 0; packet < 4; packet++)
    expected += number ^ packet << 8;
  wrong += pass(number) != expected;
  idle();
}

static void obey(char *line) {
  unsigned long slow = 0, n;
  static const struct timespec rest = {0, 100000};
  if (sscanf(line, "slow %lu", &n) == 1) {
    slow_ns = n * 1000;
    slow = passes + 1;
    make_pass();
  } else if (sscanf(line, "run %lu", &n) == 1) {
    while (n--)
      make_pass();
  } else if (sscanf(line, "rest %lu", &n) == 1) {
    for (; n--; nanosleep(&rest, NULL))
      make_pass();
  } else if (!strncmp(line, "fork", 4)) {
    pid_t child = fork();
    if (!child) {
      for (n = 0; n < 1000; n++)
        make_pass();
      _exit(wrong != 0);
    }
    int status;
    waitpid(child, &status, 0);
    wrong += status != 0;
  }
  printf("%lu %lu %lu\n", passes, slow, wrong);
  fflush(stdout);
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
  char line[128];
  struct pollfd input = {.fd = 0, .events = POLLIN};
  while (!stop) {
    struct timespec rest = {0, 100000};
    if (ppoll(&input, 1, &rest, NULL) > 0) {
      if (!fgets(line, sizeof line, stdin))
        break;
      obey(line);
    }
    make_pass();
  }
  return wrong != 0;
}
