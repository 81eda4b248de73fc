/* Beside computed jumps, and reached by them; deeper than there is a frame, which is refused. */
#include <stdio.h>
#include <stdlib.h>

#define INLINED static inline __attribute__((always_inline))

unsigned hash(unsigned x);

static unsigned long jumped;

INLINED unsigned before(unsigned x) {
  jumped++;
  return hash(x) * x + 3;
}

INLINED unsigned way(unsigned x, unsigned with) {
  jumped++;
  for (unsigned i = 0; i < (x & 7); i++)
    x = x * 31 + with;
  return x;
}

__attribute__((noinline)) unsigned jumps(unsigned x) {
  static void *ways[] = {&&first, &&second, &&third};
  x = before(x);
  goto *ways[x % 3];
first:
  return way(x, 3) + 1;
second:
  return way(x, 5) * 5;
third:
  return x ^ 77;
}

/* Its ways are parts of the inlined function themselves. */
INLINED unsigned steps(unsigned x) {
  for (unsigned i = 0; i < 10; i++)
    switch (x % 11) {
    case 0: x = x * 3 + 1; break;
    case 1: x = hash(x); break;
    case 2: x ^= x >> 3; break;
    case 3: x += 77; break;
    case 4: x = ~x; break;
    case 5: x = x * 5 + i; break;
    case 6: return x;
    case 7: x -= 13; break;
    case 8: x = x << 7 | x >> 25; break;
    case 9: x *= i + 3; break;
    default: x++; break;
    }
  return x + 1;
}

__attribute__((noinline)) unsigned switches(unsigned x) {
  unsigned y = hash(x);
  return steps(x) ^ steps(y);
}

INLINED unsigned third(unsigned x) { return hash(x) + 1; }
INLINED unsigned second(unsigned x) { return third(x) + 2; }
INLINED unsigned first(unsigned x) { return second(x) + 3; }

__attribute__((noinline)) unsigned deep(unsigned x) { return first(x) + 4; }

int main(int argc, char **argv) {
  (void)argv;
  unsigned sum = (unsigned)argc;
  for (unsigned i = 0; i < 1000; i++)
    sum = sum * 31 + jumps(i) + deep(i) + switches(i);
  printf("%08x %lu\n", sum, jumped);
  return 0;
}
