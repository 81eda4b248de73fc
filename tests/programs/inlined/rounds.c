/* A search that has a loop of its own, and what is inlined into a loop that the compiler unrolls: four calls of each for a
 * round. */
#include <stdio.h>
#include <stdlib.h>

#define INLINED static inline __attribute__((always_inline))

static unsigned table[64];

INLINED unsigned search(unsigned x, unsigned more) {
  unsigned low = 0, high = 64;
  while (low < high) {
    unsigned middle = (low + high) / 2;
    if (table[middle] < x)
      low = middle + 1;
    else
      high = middle;
  }
  return low + more;
}

INLINED unsigned mix(unsigned x, unsigned with) {
  unsigned sum = x * 7;
  sum ^= with >> 3;
  return sum + (x >> 5);
}

__attribute__((noinline)) unsigned searches(unsigned sum, unsigned n) {
  for (unsigned i = 0; i < n; i++) {
    sum = sum * 31 + (sum >> 7);
    sum ^= search(sum & 8191, i);
  }
  return sum;
}

__attribute__((noinline)) unsigned mixes(unsigned sum, unsigned with) {
  for (unsigned i = 0; i < 4; i++)
    sum = sum * 31 + mix(sum ^ i, with);
  return sum;
}

int main(int argc, char **argv) {
  unsigned rounds = argc > 1 ? atoi(argv[1]) : 1, sum = 1;
  for (unsigned i = 0; i < 64; i++)
    table[i] = i * 130;
  for (unsigned i = 0; i < rounds; i++) {
    sum = searches(sum, 4);
    sum = mixes(sum, i);
  }
  printf("%08x\n", sum);
  return 0;
}
