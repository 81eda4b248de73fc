/* Becomes another program before its entry point, as start-up code of sanitizers does, and has
   breakpoints of its own there. */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static volatile sig_atomic_t traps;
volatile int result;

static void on_trap(int signal) {
  (void)signal;
  traps++;
}

static void before_the_entry_point(int argc, char **argv, char **envp) {
  signal(SIGTRAP, on_trap);
  raise(SIGTRAP);
  __asm__ volatile("int3");
  if (argc > 1)
    return;
  char *again[] = {argv[0], "again", 0};
  execve("/proc/self/exe", again, envp);
}

__attribute__((section(".preinit_array"), used)) static void (*start)(int, char **, char **) =
    before_the_entry_point;

__attribute__((noinline)) void called_once(int n) {
  for (int i = 0; i < n; i++)
    result += i;
}

int main(int argc, char **argv) {
  (void)argv;
  called_once(argc);
  printf("%d traps\n", (int)traps);
  return 0;
}
