/* Two coroutines: one suspended inside a call of `measured`, the other above it waits for SIGUSR1 and switches to it.
 *
 * coroutines frame: their stacks are variables of main, as in makecontext(3).
 * coroutines pool: they lie in one mapping made late, which the kernel joins with the main thread's control block.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define STACK 65536

static ucontext_t start, low, high;
static volatile long sum;
static void (*volatile yield)(void);

__attribute__((noinline)) void to_high(void) { swapcontext(&low, &high); }

__attribute__((noinline)) long measured(long x) {
  yield();
  sum += x;
  return sum;
}

static void run_low(void) {
  for (long i = 0;; i++)
    measured(i);
}

static void run_high(void) {
  sigset_t set;
  int signal;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  close(open(getenv("READY_FILE"), O_CREAT | O_WRONLY, 0600));
  for (int round = 1; sigwait(&set, &signal) == 0; round++) {
    swapcontext(&high, &low);
    printf("round %d\n", round);
    fflush(stdout);
  }
}

int main(int argc, char **argv) {
  char stacks[2 * STACK];
  char *lowest = stacks;
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigprocmask(SIG_BLOCK, &set, NULL);
  if (argc > 1 && strcmp(argv[1], "pool") == 0) {
    char *pool = mmap(NULL, 3 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pool, 4096, PROT_NONE);
    lowest = pool + STACK;
  }
  yield = to_high;
  getcontext(&low);
  low.uc_stack.ss_sp = lowest;
  low.uc_stack.ss_size = STACK;
  makecontext(&low, run_low, 0);
  getcontext(&high);
  high.uc_stack.ss_sp = lowest + STACK;
  high.uc_stack.ss_size = STACK;
  makecontext(&high, run_high, 0);
  swapcontext(&start, &low);
  return 0;
}
