/* Stacks of odd size, alignment and ownership. */
#include "awkward.h"
#include <alloca.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if defined(__GLIBC__) || !defined(MUSL)
#include <ucontext.h>
#endif

SEALED long uses_alloca(long n) {
  unsigned char *bytes = alloca((size_t)n);
  for (long i = 0; i < n; i++)
    bytes[i] = (unsigned char)(i * 7);
  HERE();
  long sum = 0;
  for (long i = 0; i < n; i++)
    sum += bytes[i];
  return sum;
}
SEALED long uses_vla(long n) {
  long values[n];
  for (long i = 0; i < n; i++)
    values[i] = i * i;
  HERE();
  return values[n - 1] + values[n / 2];
}
static int check_dynamic_stack(void) {
  long expected = 0;
  for (long i = 0; i < 777; i++)
    expected += (unsigned char)(i * 7);
  return uses_alloca(777) == expected && uses_vla(100) == 99 * 99 + 50 * 50;
}

SEALED long realigned_stack(long x, long *out) {
  long __attribute__((aligned(64))) area[8];
  for (int i = 0; i < 8; i++)
    area[i] = x + i;
  HERE();
  *out = area[7];
  return (long)((uintptr_t)OPAQUE(&area[0]) & 63);
}
static int check_realigned_stack(void) {
  long out = 0;
  return realigned_stack(5, &out) == 0 && out == 12;
}

SEALED long large_frame(long x) {
  volatile char area[100000];
  area[0] = (char)x;
  area[99999] = (char)(x + 1);
  return area[0] + area[99999];
}
static int check_large_frame(void) { return large_frame(3) == 7; }

/* Coroutines by the assembler switch of shapes.S. */
long switch_stack(void **from, void *to, long value);
static void *main_stack, *routine_stack;
static long routine_log;
SEALED void routine_step(long x) { routine_log = routine_log * 10 + x; }
static void routine(void) {
  for (long i = 1;; i++) {
    routine_step(i);
    switch_stack(&routine_stack, main_stack, i);
  }
}
SEALED long resumes(void) { return switch_stack(&main_stack, routine_stack, 0); }
static int check_stack_switch(void) {
  static _Alignas(64) char stack[16384];
  void **top = (void **)(stack + sizeof stack);
  *--top = NULL; /* alignment: as after a call */
  *--top = (void *)routine;
  top -= 6;
  memset(top, 0, 6 * sizeof *top);
  routine_stack = top;
  routine_log = 0;
  return resumes() == 1 && resumes() == 2 && resumes() == 3 && routine_log == 123;
}

#ifndef MUSL
static ucontext_t outside, inside;
static volatile int contexts;
static void in_context(void) {
  contexts++;
  swapcontext(&inside, &outside);
  contexts += 10;
}
SEALED void swaps_contexts(void) { swapcontext(&outside, &inside); }
static int check_ucontext(void) {
  static _Alignas(64) char stack[65536];
  contexts = 0;
  getcontext(&inside);
  inside.uc_stack.ss_sp = stack;
  inside.uc_stack.ss_size = sizeof stack;
  inside.uc_link = &outside;
  makecontext(&inside, in_context, 0);
  swaps_contexts();
  int first = contexts;
  swaps_contexts();
  return first == 1 && contexts == 11;
}
#endif

/* A handler on a stack of its own, which interrupts whatever runs. */
static volatile sig_atomic_t handled;
SEALED void handler(int signal) { handled += signal == SIGUSR2; }
static int check_signal_handler(void) {
  static char stack[65536];
  stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack}, old;
  sigaltstack(&alternate, &old);
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
  sigaction(SIGUSR2, &action, NULL);
  int before = handled;
  raise(SIGUSR2);
  raise(SIGUSR2);
  sigaltstack(&old, NULL);
  return handled == before + 2;
}

SEALED void *return_address(void) { return __builtin_return_address(0); }
SEALED void *asks_for_return_address(void) {
  void *address = return_address();
  HERE();
  return address;
}
static int check_return_address(void) {
  void *first = asks_for_return_address();
  return first != NULL && first == asks_for_return_address();
}

const struct check stack_checks[] = {
    {"dynamic_stack", check_dynamic_stack, {{"uses_alloca", 1}, {"uses_vla", 1}}},
    {"realigned_stack", check_realigned_stack, {{"realigned_stack", 1}}},
    {"large_frame", check_large_frame, {{"large_frame", 1}}},
    {"stack_switch", check_stack_switch, {{"resumes", 3}, {"routine_step", 3}}},
#ifndef MUSL
    {"ucontext", check_ucontext, {{"swaps_contexts", 2}}},
#endif
    {"signal_handler", check_signal_handler, {{"handler", 2}}},
    {"return_address", check_return_address, {{"return_address", 2}}},
    {0},
};
