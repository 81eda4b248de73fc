// Calls that throw, one after the other, with landing pads of their own that the compiler merges: at most two for a round.
#include <cstdio>
#include <cstdlib>

extern "C" unsigned hash(unsigned x);

struct Refused {
  unsigned why;
};

static unsigned cleaned;

struct Cleans {
  unsigned by;
  ~Cleans() { cleaned += by; }
};

__attribute__((noinline)) unsigned checked(unsigned x) {
  if (x % 3 == 0)
    throw Refused{x};
  return hash(x);
}

static inline __attribute__((always_inline)) unsigned parse(unsigned x, unsigned y) {
  Cleans cleans{x & 3};
  unsigned sum = checked(y);
  return sum + cleans.by;
}

__attribute__((noinline)) unsigned both(unsigned x, unsigned y) {
  unsigned sum = x;
  try {
    sum ^= parse(sum, y);
    sum ^= parse(sum, y + 1);
  } catch (const Refused &refused) {
    sum ^= refused.why;
  }
  return sum + y;
}

int main(int argc, char **argv) {
  unsigned rounds = argc > 1 ? atoi(argv[1]) : 1, sum = 1;
  for (unsigned i = 0; i < rounds; i++)
    sum = sum * 31 + both(sum, i);
  printf("%08x %u\n", sum, cleaned);
  return 0;
}
