/* What a program begins with: what becomes of each signal, by the kernel's own call (the C library hides two), and its
 * environment. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;

__attribute__((noinline)) uint64_t look(int signal) {
  uint64_t now[4] = {0};
  if (syscall(SYS_rt_sigaction, signal, NULL, now, sizeof(uint64_t)))
    return UINT64_MAX;
  return now[0];
}

int main(void) {
  for (int signal = 1; signal <= 64; signal++)
    printf("signal %d: %llx\n", signal, (unsigned long long)look(signal));
  for (char **word = environ; *word; word++)
    puts(*word);
  return 0;
}
