/* Says of each call how long it was without a processor, from the kernel's accounts of the thread.
 *
 * off_cpu CPU CALLS OUT [thread]: pins itself to CPU, is ready, waits for SIGUSR1, makes CALLS calls
 * that compute and as many that sleep (in a thread of its own, started then, if asked for), and
 * writes a line for each to OUT: function, ns by the clock, ns without a processor. Then waits for
 * SIGTERM.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static long long now(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static volatile unsigned sink;

/* About a millisecond on a processor of its own. */
__attribute__((noinline)) void compute(void) {
  unsigned x = sink | 1;
  for (int i = 0; i < 400000; i++) {
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
  }
  sink = x;
}

__attribute__((noinline)) void doze(void) {
  struct timespec t = {0, 700000};
  nanosleep(&t, 0);
}

/* The clock innermost: reading it is no system call, at whose end the thread may be taken off. */
static void timed(FILE *out, const char *name, void (*call)(void)) {
  long long ran = now(CLOCK_THREAD_CPUTIME_ID), wall = now(CLOCK_MONOTONIC);
  call();
  wall = now(CLOCK_MONOTONIC) - wall, ran = now(CLOCK_THREAD_CPUTIME_ID) - ran;
  fprintf(out, "%s %lld %lld\n", name, wall, wall - ran);
}

static int calls;
static char *path;

static void *work(void *unused) {
  FILE *out = fopen(path, "w");
  if (!out) {
    perror(path);
    exit(3);
  }
  setvbuf(out, malloc(1 << 22), _IOFBF, 1 << 22);
  for (int i = 0; i < calls; i++) {
    timed(out, "compute", compute);
    timed(out, "doze", doze);
  }
  fclose(out);
  return unused;
}

int main(int argc, char **argv) {
  if (argc < 4)
    return 2;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(atoi(argv[1]), &set);
  if (sched_setaffinity(0, sizeof set, &set)) {
    perror("sched_setaffinity");
    return 3;
  }
  calls = atoi(argv[2]), path = argv[3];
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  sigaddset(&signals, SIGTERM);
  sigprocmask(SIG_BLOCK, &signals, 0);
  const char *ready = getenv("READY_FILE");
  if (ready)
    close(open(ready, O_CREAT | O_WRONLY, 0644));
  int signal = 0;
  sigwait(&signals, &signal);
  if (signal == SIGTERM)
    return 0;
  if (argc > 4) {
    pthread_t thread;
    pthread_create(&thread, 0, work, 0);
    pthread_join(thread, 0);
  } else {
    work(0);
  }
  printf("done\n"), fflush(stdout);
  sigwait(&signals, &signal);
  return 0;
}
