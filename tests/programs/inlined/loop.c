/* Threads that never leave `worker`, into whose loop everything is inlined: one busy, one that sleeps in between.
 * loop: works until SIGTERM, and says whether all was as it should be. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define INLINED static inline __attribute__((always_inline))

unsigned hash(unsigned x);

struct queue {
  unsigned long packets, looked_up, rewritten;
  unsigned sum;
  int pause_ms;
};

static volatile sig_atomic_t stop;
static unsigned keys[1024], values[1024];

/* Where rounds begin, and the loop's jump leads. */
INLINED unsigned next(struct queue *q) {
  unsigned n = (unsigned)q->packets++;
  if (q->pause_ms)
    poll(NULL, 0, q->pause_ms);
  return n;
}

INLINED unsigned lookup(struct queue *q, unsigned key) {
  unsigned h = hash(key) & 1023;
  q->looked_up++;
  for (int i = 0; i < 8; i++) {
    unsigned at = (h + i) & 1023;
    if (keys[at] == key)
      return values[at];
  }
  return 0;
}

INLINED void rewrite(struct queue *q, unsigned with) {
  unsigned sum = 0;
  q->rewritten++;
  for (int i = 0; i < 1000; i++)
    sum += (with >> (i & 7)) ^ (sum << 3);
  q->sum = q->sum * 31 + sum;
}

__attribute__((noinline)) void worker(struct queue *q) {
  do {
    unsigned n = next(q);
    if (n % 5)
      rewrite(q, lookup(q, n & 2047));
    if (n & 1)
      rewrite(q, n);
  } while (!stop);
}

static void *run(void *q) {
  worker(q);
  return NULL;
}

static unsigned sum_of(unsigned long packets) {
  struct queue q = {0};
  q.sum = 1;
  for (unsigned long i = 0; i < packets; i++) {
    unsigned n = (unsigned)i;
    if (n % 5)
      rewrite(&q, lookup(&q, n & 2047));
    if (n & 1)
      rewrite(&q, n);
  }
  return q.sum;
}

static void on_term(int signal) {
  (void)signal;
  stop = 1;
}

int main(void) {
  struct queue queues[2] = {{.sum = 1}, {.sum = 1, .pause_ms = 2}};
  struct sigaction action = {.sa_handler = on_term};
  pthread_t threads[2];
  int right = 1;

  sigaction(SIGTERM, &action, NULL);
  for (unsigned i = 0; i < 1024; i++)
    keys[hash(i) & 1023] = i, values[hash(i) & 1023] = i * 3;
  for (int i = 0; i < 2; i++)
    pthread_create(&threads[i], NULL, run, &queues[i]);
  while (!queues[0].packets || !queues[1].packets)
    sched_yield();
  const char *ready = getenv("READY_FILE");
  if (ready)
    close(open(ready, O_CREAT | O_WRONLY, 0600));
  for (int i = 0; i < 2; i++) {
    pthread_join(threads[i], NULL);
    right &= queues[i].sum == sum_of(queues[i].packets);
  }
  printf("%lu and %lu packets, %s\n", queues[0].packets, queues[1].packets, right ? "right" : "wrong");
  return !right;
}
