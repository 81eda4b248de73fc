/* Ends with the exit code that it is given, or by the signal whose negative it is given. */
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

static volatile int code;

__attribute__((noinline)) int ends_work(int i) {
  return code += i;
}

int main(int argc, char **argv) {
  int how = ends_work(atoi(argv[argc - 1]));
  if (how < 0) {
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    signal(-how, SIG_DFL);
    raise(-how);
  }
  return how;
}
