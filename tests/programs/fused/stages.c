/* Stages that are called right behind each other. Does what each line of stdin says, and answers with a line:
   "run N": N rounds, "forever": stages until SIGUSR1, "fork": a child that does that, "wait": for its end,
   "sum": what came of all rounds. */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define STAGE __attribute__((noinline, noclone))

static volatile sig_atomic_t stop;
static volatile unsigned waits = 100;

STAGE uint64_t first(uint64_t x) { return (x ^ 5) * 0x9e3779b97f4a7c15; }
STAGE uint64_t second(uint64_t x) { return (x ^ (x >> 7)) * 3; }

/* Not measured: longer than any of them. */
STAGE uint64_t hidden(uint64_t x) {
  for (unsigned n = waits; n > 0; n--)
    x = x * 3 + n;
  return x;
}

/* Leaves by a jump: what follows comes behind no exit. */
STAGE uint64_t jumping(uint64_t x) { return hidden(x + 1); }
STAGE uint64_t third(uint64_t x) { return x + (x >> 3); }

/* Behind a branch that skips a call, and behind a loop. */
STAGE uint64_t fourth(uint64_t x) { return x ^ 77; }
STAGE uint64_t fifth(uint64_t x) { return x * 7 + 1; }

STAGE uint64_t round_of(uint64_t x, unsigned skips) {
  x = first(x);
  x = second(x);
  x = jumping(x);
  x = third(x);
  x = fourth(x);
  if (skips)
    return x;
  for (unsigned n = waits; n > 0; n--)
    x += n ^ x;
  return fifth(x) + 1;
}

STAGE uint64_t rounds(uint64_t n, uint64_t x) {
  for (uint64_t i = 0; i < n && !stop; i++)
    x = round_of(x, i % 3 == 0);
  return x;
}

/* Straight calls alone, in a loop that may go on for ever. */
STAGE uint64_t spins(uint64_t x) {
  while (!stop) {
    x = first(x);
    x = second(x);
    x = fourth(x);
    x = fifth(x);
  }
  return x;
}

static void on_signal(int signal) { stop = signal; }

int main(void) {
  struct sigaction action = {.sa_handler = on_signal};
  sigaction(SIGUSR1, &action, NULL);
  const char *ready = getenv("READY_FILE");
  if (ready)
    close(open(ready, O_CREAT | O_WRONLY, 0600));
  setvbuf(stdout, NULL, _IOLBF, 0);
  uint64_t sum = 1;
  char line[64];
  while (fgets(line, sizeof line, stdin)) {
    if (strncmp(line, "run ", 4) == 0) {
      sum = rounds(strtoull(line + 4, NULL, 10), sum);
      puts("done");
    } else if (strcmp(line, "forever\n") == 0) {
      puts("begun");
      spins(sum);
      stop = 0;
      puts("stopped");
    } else if (strcmp(line, "fork\n") == 0) {
      pid_t child = fork();
      if (child == 0) {
        spins(sum);
        _exit(7);
      }
      printf("%d\n", child);
    } else if (strcmp(line, "wait\n") == 0) {
      int status = 0;
      wait(&status);
      printf("%d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    } else {
      printf("%016lx\n", (unsigned long)sum);
    }
  }
  return 0;
}
