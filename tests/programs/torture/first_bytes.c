/* Threads that stand in the first bytes of a function nearly always: whoever replaces these bytes
 * must move them. cpuid takes longer than everything else together, in a virtual machine more so.
 * Rounds until SIGTERM, then `first_bytes: N rounds, W wrong, gs BASE`. */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define THREADS 4

__asm__(".globl first_bytes\n"
        ".type first_bytes, @function\n"
        "first_bytes:\n"
        "cpuid\n"
        "cpuid\n"
        "cpuid\n"
        "lea 1(%rdi,%rdi), %rax\n"
        "ret\n"
        ".size first_bytes, . - first_bytes\n");

static atomic_bool stop;
static atomic_ulong all_rounds, all_wrong;

static unsigned long call(unsigned long n) {
  unsigned long result;
  /* The red zone is left alone: the call pushes. */
  __asm__ volatile("sub $128, %%rsp\ncall first_bytes\nadd $128, %%rsp"
                   : "=a"(result), "+D"(n)
                   : "a"(0)
                   : "rbx", "rcx", "rdx", "memory", "cc");
  return result;
}

static void *run(void *unused) {
  unsigned long rounds = 0, wrong = 0, gs = 0;
  for (; !stop; rounds++)
    wrong += call(rounds) != 2 * rounds + 1;
  syscall(SYS_arch_prctl, ARCH_GET_GS, &gs);
  all_rounds += rounds;
  all_wrong += wrong + (gs != 0);
  return unused;
}

int main(void) {
  sigset_t term;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &term, NULL);
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], NULL, run, NULL))
      return 3;
  const char *path = getenv("READY_FILE");
  FILE *file = path ? fopen(path, "w") : NULL;
  if (file)
    fclose(file);
  int signal;
  sigwait(&term, &signal);
  stop = 1;
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  unsigned long gs = 0;
  syscall(SYS_arch_prctl, ARCH_GET_GS, &gs);
  printf("first_bytes: %lu rounds, %lu wrong, gs %#lx\n", all_rounds, all_wrong, gs);
  return all_wrong != 0 || all_rounds == 0;
}
