/* Says of each call how long it waited for a processor, from the kernel's account of the thread.
 *
 * off_cpu CPU CALLS OUT [thread|long]: pins itself to CPU, is ready, waits for SIGUSR1, makes CALLS calls
 * that compute (ten times as long if asked for) and as many that sleep (in a thread of its own,
 * started then, if asked for), and
 * writes a line for each to OUT: function, ns by the clock, ns on a run queue without running
 * (Linux: Documentation/scheduler/sched-stats.rst), ns that reading this before and after took. Then
 * waits for SIGTERM.
 *
 * Not the thread's CPU time: the kernel takes from it what a hypervisor took away, which is in no
 * switch, and books that on whichever thread runs when it hears of it.
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

static int rounds = 400000;

/* Half a millisecond to one on a processor of its own. */
__attribute__((noinline)) void compute(void) {
  unsigned x = sink | 1;
  for (int i = 0; i < rounds; i++) {
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

static int schedstat;

static long long waited(void) {
  char said[128];
  ssize_t n = pread(schedstat, said, sizeof said - 1, 0);
  long long ran, delay;
  if (n <= 0 || (said[n] = 0, sscanf(said, "%lld %lld", &ran, &delay) != 2)) {
    perror("/proc/thread-self/schedstat");
    exit(3);
  }
  return delay;
}

/* A thread that is taken off at the end of a system call waits outside of the call that is timed;
 * the time that the system calls took tells. */
static void timed(FILE *out, const char *name, void (*call)(void)) {
  long long before = now(CLOCK_MONOTONIC), delay = waited(), begin = now(CLOCK_MONOTONIC);
  call();
  long long end = now(CLOCK_MONOTONIC);
  delay = waited() - delay;
  long long reading = now(CLOCK_MONOTONIC) - end + begin - before;
  fprintf(out, "%s %lld %lld %lld\n", name, end - begin, delay, reading);
}

static int calls;
static char *path;

static void *work(void *unused) {
  FILE *out = fopen(path, "w");
  schedstat = open("/proc/thread-self/schedstat", O_RDONLY);
  if (!out || schedstat < 0) {
    perror(out ? "/proc/thread-self/schedstat" : path);
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
  if (argc > 4 && !strcmp(argv[4], "long"))
    rounds *= 10;
  if (argc > 4 && !strcmp(argv[4], "thread")) {
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
