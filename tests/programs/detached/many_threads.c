/* Many threads that call `measured` now and then until SIGTERM; says whether all of it was right. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS 130

static volatile sig_atomic_t stop;
static long wrong[THREADS];

__attribute__((noinline)) long measured(long x) {
  __asm__ volatile("" : "+r"(x));
  return x * 3 + 1;
}

static void *calls(void *wrongs) {
  for (long n = 0; !stop; n++) {
    *(long *)wrongs += measured(n) != 3 * n + 1;
    usleep(5000);
  }
  return NULL;
}

static void on_term(int signal) {
  (void)signal;
  stop = 1;
}

int main(void) {
  struct sigaction action = {.sa_handler = on_term};
  pthread_t threads[THREADS];
  const char *ready = getenv("READY_FILE");
  long all = 0;

  sigaction(SIGTERM, &action, NULL);
  for (int i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], NULL, calls, &wrong[i]))
      return 2;
  if (ready)
    close(open(ready, O_CREAT | O_WRONLY, 0600));
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    all += wrong[i];
  }
  printf("%ld wrong\n", all);
  return all != 0;
}
