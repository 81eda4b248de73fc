/* A function that never returns, whose loop is shorter than 128 bytes. Works until SIGTERM. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

unsigned hash(unsigned x);

static volatile sig_atomic_t stop;
static unsigned long steps, sum;

static inline __attribute__((always_inline)) void step(unsigned n) {
  steps++;
  sum += hash(n) & 1;
}

__attribute__((noinline)) unsigned long spins(void) {
  unsigned long rounds = 0;
  while (!stop)
    step((unsigned)rounds++);
  return rounds;
}

static void on_term(int signal) {
  (void)signal;
  stop = 1;
}

int main(void) {
  struct sigaction action = {.sa_handler = on_term};
  const char *ready = getenv("READY_FILE");
  sigaction(SIGTERM, &action, NULL);
  if (ready)
    close(open(ready, O_CREAT | O_WRONLY, 0600));
  unsigned long rounds = spins();
  int right = rounds == steps;
  printf("%lu steps, %lu odd, %s\n", steps, sum, right ? "right" : "wrong");
  return !right;
}
