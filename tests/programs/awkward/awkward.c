/* Runs every check as it is told on standard input, a line each:
 *   run N    N rounds; then for each check `NAME ok N` or `NAME FAIL n of N`, and `end`
 *   loop     rounds until the next line arrives; the same answer
 *   calls    for each function whose calls are known: `FUNCTION calls-a-round`, and `end`
 * Ends with standard input: 0 when every check was always right.
 *
 * awkward CHECK...: only these checks. */
#include "awkward.h"
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct check *const lists[] = {shape_checks, language_checks, vector_checks,
                                            stack_checks, process_checks, library_checks};
#define MOST 256
static const struct check *checks[MOST];
static unsigned failed[MOST], count;

static void choose(int argc, char **argv) {
  for (size_t list = 0; list < sizeof lists / sizeof *lists; list++)
    for (const struct check *check = lists[list]; check->name; check++) {
      int wanted = argc < 2;
      for (int i = 1; i < argc; i++)
        wanted |= !strcmp(argv[i], check->name);
      if (wanted)
        checks[count++] = check;
    }
}

static void one_round(void) {
  for (unsigned i = 0; i < count; i++)
    failed[i] += !checks[i]->right();
}

static int another_line(void) {
  struct pollfd input = {.fd = 0, .events = POLLIN};
  return poll(&input, 1, 0) != 0;
}

static unsigned answer(unsigned rounds) {
  unsigned wrong = 0;
  for (unsigned i = 0; i < count; i++) {
    if (failed[i])
      printf("%s FAIL %u of %u\n", checks[i]->name, failed[i], rounds);
    else
      printf("%s ok %u\n", checks[i]->name, rounds);
    wrong += failed[i];
  }
  memset(failed, 0, sizeof failed);
  puts("end");
  return wrong;
}

static void print_calls(void) {
  for (unsigned i = 0; i < count; i++)
    for (unsigned j = 0; j < 4 && checks[i]->calls[j].function; j++)
      printf("%s %u\n", checks[i]->calls[j].function, checks[i]->calls[j].a_round);
  puts("end");
}

static void ready(void) {
  const char *path = getenv("READY_FILE");
  FILE *file = path ? fopen(path, "w") : NULL;
  if (file)
    fclose(file);
}

int main(int argc, char **argv) {
  choose(argc, argv);
  if (!count) {
    fputs("awkward: no such check\n", stderr);
    return 2;
  }
  setvbuf(stdout, NULL, _IOLBF, 0);
  /* poll looks at the descriptor: nothing may wait in a buffer. */
  setvbuf(stdin, NULL, _IONBF, 0);
  ready();
  char line[64];
  unsigned wrong = 0;
  while (fgets(line, sizeof line, stdin)) {
    unsigned rounds = 0;
    if (sscanf(line, "run %u", &rounds) == 1) {
      for (unsigned i = 0; i < rounds; i++)
        one_round();
      wrong += answer(rounds);
    } else if (!strcmp(line, "loop\n")) {
      do {
        one_round();
        rounds++;
      } while (!another_line());
      wrong += answer(rounds);
    } else if (!strcmp(line, "calls\n")) {
      print_calls();
    } else {
      fprintf(stderr, "awkward: unknown line %s", line);
      return 2;
    }
  }
  return wrong != 0;
}
