// An inlined function of which every third call throws past the function that it is in.
#include <cstdio>
#include <cstdlib>

extern "C" unsigned hash(unsigned x);

struct Refused {
  unsigned why;
};

static unsigned long cleaned;

struct Cleans {
  ~Cleans() { cleaned++; }
};

static inline __attribute__((always_inline)) unsigned check(unsigned x) {
  Cleans cleans;
  unsigned h = hash(x);
  if (x % 3 == 0)
    throw Refused{h};
  return hash(h);
}

__attribute__((noinline)) unsigned filter(unsigned x) {
  unsigned before = hash(x + 1);
  return check(x) ^ before;
}

__attribute__((noinline)) unsigned caught(unsigned x) {
  try {
    return check(x);
  } catch (const Refused &refused) {
    return refused.why;
  }
}

int main(int argc, char **argv) {
  unsigned long n = argc > 1 ? strtoul(argv[1], nullptr, 10) : 1000, thrown = 0;
  unsigned sum = 0;
  for (unsigned i = 0; i < n; i++) {
    try {
      sum = sum * 31 + filter(i);
    } catch (const Refused &refused) {
      sum ^= refused.why;
      thrown++;
    }
    sum += caught(i);
  }
  printf("%lu thrown, %lu cleaned, %08x\n", thrown, cleaned, sum);
  return thrown != (n + 2) / 3 || cleaned != 2 * n;
}
