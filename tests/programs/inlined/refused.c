/* What cannot be timed where it is inlined: beside a computed jump; deeper than there is a frame. */
#include <stdio.h>
#include <stdlib.h>

#define INLINED static inline __attribute__((always_inline))

unsigned hash(unsigned x);

static void *const labels[] = {0};

INLINED unsigned beside_a_jump(unsigned x) { return x * x + 3; }

__attribute__((noinline)) unsigned jumps(unsigned x) {
  static void *ways[] = {&&first, &&second, &&third};
  x = beside_a_jump(x);
  goto *ways[x % 3];
first:
  return x + 1;
second:
  return x * 5;
third:
  return x ^ 77;
}

INLINED unsigned third(unsigned x) { return hash(x) + 1; }
INLINED unsigned second(unsigned x) { return third(x) + 2; }
INLINED unsigned first(unsigned x) { return second(x) + 3; }

__attribute__((noinline)) unsigned deep(unsigned x) { return first(x) + 4; }

int main(int argc, char **argv) {
  (void)argv;
  unsigned sum = (unsigned)argc + (labels[0] != 0);
  for (unsigned i = 0; i < 1000; i++)
    sum = sum * 31 + jumps(i) + deep(i);
  printf("%08x\n", sum);
  return 0;
}
