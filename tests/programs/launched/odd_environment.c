/* Runs what it is told to with an environment that no shell makes: unsorted, names that come twice, entries that are no
 * NAME=VALUE, bytes that are no UTF-8. */
#include <unistd.h>

int main(int argc, char **argv) {
  char *environment[] = {"ZZ=1",           "B=last one",       "B=first one, sorted", "no_value", "", "=x", "A=\xff\xfe",
                         "EMPTY=", "A=again", "HOPSCOPE_GUARDED=not the mark", "no_value", NULL};
  if (argc < 2)
    return 1;
  execve(argv[1], argv + 1, environment);
  return 1;
}
