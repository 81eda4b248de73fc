/* One thread is under strict seccomp and calls `strict_work`; the main thread waits for the end of stdin. */
#define _GNU_SOURCE
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>

static volatile int is_strict;
static volatile long added = 1, wrong;

__attribute__((noinline)) long strict_work(long i) {
  return 2 * i + added;
}

static void *strictly(void *unused) {
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT))
    return unused;
  is_strict = 1;
  for (long i = 0;; i++)
    wrong += strict_work(i) != 2 * i + 1;
}

int main(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, strictly, NULL))
    return 77;
  while (!is_strict)
    ;
  puts("strict");
  fflush(stdout);
  while (getchar() != EOF)
    ;
  return wrong != 0;
}
