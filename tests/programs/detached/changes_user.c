/* At the first SIGUSR1 a thread blocks inside a call of `blocked`, and the process becomes another user's, as daemons do.
 * At each later one `work` is called a hundred times. */
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static sem_t inside;
static volatile long sum;

__attribute__((noinline)) void blocked(int x) {
  sum += x;
  sem_post(&inside);
  for (;;)
    pause();
}

__attribute__((noinline)) int work(int x) {
  sum += x;
  return x + 1;
}

static void *run(void *x) {
  blocked(1);
  return x;
}

int main(void) {
  sigset_t set;
  int signal;
  pthread_t thread;
  sem_init(&inside, 0, 0);
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  close(open(getenv("READY_FILE"), O_CREAT | O_WRONLY, 0600));
  for (int round = 0; sigwait(&set, &signal) == 0; round++) {
    if (round == 0) {
      pthread_create(&thread, NULL, run, NULL);
      sem_wait(&inside);
      if (setuid(65534) != 0)
        return 1;
    }
    for (int i = 0; i < 100; i++)
      work(i);
    printf("round %d\n", round + 1);
    fflush(stdout);
  }
  return 0;
}
