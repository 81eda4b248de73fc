/* At SIGUSR1 a child is forked that calls `work` until SIGTERM; the parent says how it ended. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t stop;
static volatile long sum;

static void on_term(int signal) {
  (void)signal;
  stop = 1;
}

__attribute__((noinline)) int work(int x) {
  sum += x;
  return x + 1;
}

int main(void) {
  sigset_t set;
  int signal, status;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigprocmask(SIG_BLOCK, &set, NULL);
  printf("%p\n", (void *)work);
  fflush(stdout);
  close(open(getenv("READY_FILE"), O_CREAT | O_WRONLY, 0600));
  sigwait(&set, &signal);
  pid_t child = fork();
  if (child == 0) {
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_term}, NULL);
    for (int i = 0; !stop; i++) {
      usleep(1000);
      work(i);
    }
    _exit(0);
  }
  printf("%d\n", child);
  fflush(stdout);
  waitpid(child, &status, 0);
  printf("child: signal %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
  return 0;
}
