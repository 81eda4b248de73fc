// A function that catches what passes one that is inlined into it, and goes on.
#include <cstdio>
#include <cstdlib>

extern "C" unsigned hash(unsigned x);

struct Bad {
  unsigned what;
};

static unsigned long parsed;

__attribute__((noinline)) unsigned field(unsigned x) {
  if (x % 3 == 0)
    throw Bad{x};
  return hash(x);
}

static inline __attribute__((always_inline)) unsigned parse(unsigned x) {
  unsigned first = field(x);
  parsed++;
  return first * 31 + field(first | 1);
}

__attribute__((noinline)) unsigned after(unsigned x) { return hash(x) ^ x; }

// Handlers of two depths: that of the inner one belongs to what is inlined.
static inline __attribute__((always_inline)) unsigned lenient(unsigned x) {
  try {
    return parse(x);
  } catch (const Bad &bad) {
    return after(bad.what);
  }
}

__attribute__((noinline)) unsigned handles(unsigned n, unsigned long *bad) {
  unsigned sum = 0;
  for (unsigned i = 0; i < n; i++) {
    try {
      sum += parse(i);
    } catch (const Bad &one) {
      ++*bad;
      sum ^= one.what;
    }
    sum = sum * 7 + after(i) + lenient(i);
  }
  return sum;
}

int main(int argc, char **argv) {
  unsigned n = argc > 1 ? (unsigned)atoi(argv[1]) : 1000;
  unsigned long bad = 0;
  unsigned sum = handles(n, &bad);
  printf("%lu parsed, %lu bad, %08x\n", parsed, bad, sum);
}
