/* vforks [FILE]: at SIGUSR1 a thread waits for its vforked child, uninterruptibly, until the main thread has gone on for a
 * while: while the main thread stands still that never ends. Then until FILE is there. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile long rounds;
static const char *file;

__attribute__((noinline)) long work(long x) { return x + rounds; }

static void *run(void *x) {
  sigset_t set;
  int signal;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  while (sigwait(&set, &signal) == 0) {
    static const char vforked[] = "vforked\n";
    long until = rounds + 2000;
    pid_t child = vfork();
    if (child == 0) {
      /* It shares this memory, and this program's output. */
      write(1, vforked, sizeof(vforked) - 1);
      while (rounds < until || (file && access(file, F_OK))) {
        struct timespec millisecond = {0, 1000000};
        nanosleep(&millisecond, NULL);
      }
      _exit(0);
    }
    waitpid(child, NULL, 0);
  }
  return x;
}

int main(int count, char **words) {
  sigset_t set;
  pthread_t thread;
  file = count > 1 ? words[1] : NULL;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  pthread_create(&thread, NULL, run, NULL);
  close(open(getenv("READY_FILE"), O_CREAT | O_WRONLY, 0600));
  for (;;) {
    struct timespec millisecond = {0, 1000000};
    nanosleep(&millisecond, NULL);
    rounds++;
    work(rounds);
  }
}
