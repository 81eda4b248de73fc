/* Its main thread ends; another one calls `work` for ever. */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static pthread_t first;
static volatile long sum;

__attribute__((noinline)) long work(long x) { return sum += x; }

static void *run(void *x) {
  pthread_join(first, NULL);
  close(open(getenv("READY_FILE"), O_CREAT | O_WRONLY, 0600));
  for (;;) {
    struct timespec millisecond = {0, 1000000};
    nanosleep(&millisecond, NULL);
    work(1);
  }
  return x;
}

int main(void) {
  pthread_t thread;
  first = pthread_self();
  pthread_create(&thread, NULL, run, NULL);
  pthread_exit(NULL);
}
