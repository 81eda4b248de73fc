/* Threads that come and go, with and without libc's knowledge, and signals that interrupt them. */
#define _GNU_SOURCE
#include "torture.h"
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

static void *short_lived(void *argument) {
  unsigned seed = (unsigned)(uintptr_t)argument, wrong = 0;
  for (unsigned i = 0; i < 50; i++)
    wrong += work(seed) != expected[seed];
  return (void *)(uintptr_t)wrong;
}

unsigned long threading(unsigned long *rounds) {
  unsigned long wrong = 0;
  while (!stop) {
    pthread_t threads[4];
    unsigned made = 0;
    for (; made < 4; made++)
      if (pthread_create(&threads[made], NULL, short_lived, (void *)(uintptr_t)made))
        break;
    for (unsigned i = 0; i < made; i++) {
      void *result;
      pthread_join(threads[i], &result);
      wrong += (uintptr_t)result;
    }
    ++*rounds;
  }
  return wrong;
}

/* A thread without thread-local storage of its own: fs and gs are the creator's. */
static _Alignas(64) char raw_stacks[2][65536];
static int raw_alive[2];
static unsigned raw_wrong[2];
static void raw_thread(long slot) {
  for (unsigned i = 0; i < 200; i++)
    raw_wrong[slot] += work(i % SEEDS) != expected[i % SEEDS];
}

/* raw_clone(flags, stack, cleared word, function, argument): the child runs the function on its
 * stack and ends by the system call alone. */
long raw_clone(long flags, void *stack, int *cleared, void (*function)(long), long argument);
__asm__(".text\n"
        ".p2align 4\n"
        ".type raw_clone, @function\n"
        "raw_clone:\n"
        "  mov %rcx, %r9\n"   /* function */
        "  mov %r8, %r11\n"   /* argument: r11 is lost by syscall, so over the new stack */
        "  sub $16, %rsi\n"
        "  mov %r11, (%rsi)\n"
        "  mov %rdx, %r10\n"  /* child_tid */
        "  xor %edx, %edx\n"
        "  xor %r8d, %r8d\n"
        "  mov $56, %eax\n"
        "  syscall\n"
        "  test %rax, %rax\n"
        "  jz 1f\n"
        "  ret\n"
        "1: xor %ebp, %ebp\n"
        "  mov (%rsp), %rdi\n"
        "  call *%r9\n"
        "  xor %edi, %edi\n"
        "  mov $60, %eax\n"
        "  syscall\n"
        "  hlt\n"
        ".size raw_clone, . - raw_clone\n");

unsigned long raw_cloning(unsigned long *rounds) {
  const long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                     CLONE_SYSVSEM | CLONE_CHILD_CLEARTID;
  unsigned long wrong = 0;
  while (!stop) {
    for (long slot = 0; slot < 2; slot++) {
      raw_alive[slot] = 1;
      if (raw_clone(flags, raw_stacks[slot] + sizeof raw_stacks[slot], &raw_alive[slot], raw_thread,
                    slot) < 0)
        raw_alive[slot] = 0, wrong++;
    }
    for (unsigned i = 0; i < 100; i++)
      wrong += work(i % SEEDS) != expected[i % SEEDS];
    for (int slot = 0; slot < 2; slot++)
      while (__atomic_load_n(&raw_alive[slot], __ATOMIC_ACQUIRE))
        syscall(SYS_futex, &raw_alive[slot], FUTEX_WAIT, 1, NULL, NULL, 0);
    ++*rounds;
  }
  return wrong + raw_wrong[0] + raw_wrong[1];
}

static volatile unsigned long handled, handled_wrong;
static void on_alarm(int signal) {
  (void)signal;
  unsigned seed = (unsigned)(handled++ % SEEDS);
  handled_wrong += work(seed) != expected[seed];
}

static void *sends_signals(void *argument) {
  pid_t to = *(pid_t *)argument;
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, NULL);
  while (!stop) {
    syscall(SYS_tgkill, getpid(), to, SIGUSR1);
    sched_yield();
  }
  return NULL;
}

unsigned long signalling(unsigned long *rounds) {
  struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART | SA_NODEFER};
  sigaction(SIGALRM, &action, NULL);
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, NULL);
  struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
  pid_t self = (pid_t)syscall(SYS_gettid);
  pthread_t thread;
  if (pthread_create(&thread, NULL, sends_signals, &self))
    return 1;
  setitimer(ITIMER_REAL, &often, NULL);
  unsigned long wrong = 0;
  for (unsigned seed = 0; !stop; seed = (seed + 1) % SEEDS, ++*rounds)
    wrong += work(seed) != expected[seed];
  setitimer(ITIMER_REAL, &never, NULL);
  pthread_join(thread, NULL);
  return wrong + handled_wrong;
}
