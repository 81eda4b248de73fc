/* Jobs of a few steps, each of which calls a short function many times. Reads commands, a line each: "more" makes each step
 * call another short function as often, "quit" ends. Says how many jobs it did, and what they came to for each. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define STEPS 4
#define CALLS 25000
#define OUT __attribute__((noinline, noclone, noipa))

static volatile int more, quit;

OUT uint64_t budget_leaf(uint64_t x) { return x * 6364136223846793005u + 1442695040888963407u; }
OUT uint64_t budget_later(uint64_t x) { return x ^ x >> 7 ^ x << 9; }

OUT uint64_t budget_step(uint64_t x) {
  uint64_t y = x;
  for (int n = 0; n < CALLS; n++)
    y = budget_leaf(y);
  if (more)
    for (int n = 0; n < CALLS; n++)
      x = budget_later(x);
  return y;
}

OUT uint64_t budget_job(uint64_t x) {
  for (int n = 0; n < STEPS; n++)
    x = budget_step(x);
  return x;
}

static void *works(void *jobs) {
  uint64_t first = budget_job(1), n = 0;
  while (!quit) {
    if (budget_job(1) != first)
      return NULL;
    n++;
  }
  *(uint64_t *)jobs = n;
  return &quit;
}

int main(int argc, char **argv) {
  char line[16];
  uint64_t jobs = 0;
  pthread_t thread;
  void *right;
  /* A number of jobs, and no commands. */
  if (argc > 1) {
    unsigned long n = 0, most;
    sscanf(argv[1], "%lu", &most);
    for (; n < most; n++)
      jobs += budget_job(1);
    printf("%lu: %lu\n", n, (unsigned long)jobs);
    return 0;
  }
  pthread_create(&thread, NULL, works, &jobs);
  printf("ready\n");
  fflush(stdout);
  while (fgets(line, sizeof line, stdin)) {
    if (!strcmp(line, "more\n"))
      more = 1;
    if (!strcmp(line, "quit\n"))
      break;
  }
  quit = 1;
  pthread_join(thread, &right);
  printf("%s\n", right ? "right" : "wrong");
  return 0;
}
