#include "torture.h"

#ifndef PART
#define PART __attribute__((noinline))
#endif

PART unsigned work_leaf(unsigned x) {
  x ^= x << 13;
  x ^= x >> 17;
  return x ^ x << 5;
}

/* Inlined wherever it is used. */
static inline __attribute__((always_inline)) unsigned mixed(unsigned x) {
  x ^= x >> 15;
  x *= 0x2c1b3c6d;
  return x ^ x >> 12;
}

PART unsigned work_switch(unsigned what, unsigned x) {
  switch (what) {
  case 0: return x + 3;
  case 1: return x * 5;
  case 2: return x ^ 0x55aa;
  case 3: return work_leaf(x);
  case 4: return x >> 3;
  case 5: return ~x;
  case 6: return mixed(x) - 77;
  default: return x | 1;
  }
}

PART unsigned work_recursive(unsigned depth, unsigned x) {
  return depth ? work_recursive(depth - 1, work_leaf(x)) + depth : x;
}

static unsigned (*volatile by_pointer)(unsigned) = work_leaf;

unsigned work(unsigned seed) {
  unsigned x = seed * 2654435761u + 1;
  for (unsigned i = 0; i < 16; i++)
    x = work_switch((x >> 7) & 7, mixed(x)) + by_pointer(x);
  return work_recursive(seed & 7, x);
}
