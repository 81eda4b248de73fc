/* Arguments and results in vector registers of every width that the processor has. */
#include "awkward.h"
#include <string.h>

typedef float f4 __attribute__((vector_size(16)));
typedef double d4 __attribute__((vector_size(32)));
typedef long l4 __attribute__((vector_size(32)));
typedef float f16 __attribute__((vector_size(64)));

SEALED f4 sse_arguments(f4 a, f4 b, f4 c) { return a * b + c; }
static int check_sse(void) {
  f4 r = sse_arguments((f4){1, 2, 3, 4}, (f4){5, 6, 7, 8}, (f4){1, 1, 1, 1});
  return r[0] == 6 && r[3] == 33;
}

#define WITH(features) __attribute__((target(features)))

WITH("avx") SEALED d4 avx_arguments(d4 a, d4 b) { return a * b - a; }
WITH("avx") static int run_avx(void) {
  d4 r = avx_arguments((d4){1, 2, 3, 4}, (d4){5, 6, 7, 8});
  return r[0] == 4 && r[1] == 10 && r[2] == 18 && r[3] == 28;
}
static int check_avx(void) { return !__builtin_cpu_supports("avx") || run_avx(); }

WITH("avx2") SEALED l4 avx2_arguments(l4 a, l4 b) { return (a + b) ^ (b - a); }
WITH("avx2") static int run_avx2(void) {
  l4 r = avx2_arguments((l4){1, 2, 3, 4}, (l4){9, 8, 7, 6});
  return r[0] == (0x0a ^ 0x08) && r[3] == (0x0a ^ 0x02);
}
static int check_avx2(void) { return !__builtin_cpu_supports("avx2") || run_avx2(); }

WITH("avx512f") SEALED f16 avx512_arguments(f16 a, f16 b, f16 c, f16 d, f16 e, f16 f, f16 g,
                                            f16 h) {
  return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h;
}
WITH("avx512f") static int run_avx512(void) {
  f16 v[8];
  for (int i = 0; i < 8; i++)
    for (int j = 0; j < 16; j++)
      v[i][j] = (float)(i + 10 * j);
  f16 r = avx512_arguments(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]);
  for (int j = 0; j < 16; j++)
    if (r[j] != (float)(168 + 360 * j))
      return 0;
  return 1;
}
static int check_avx512(void) { return !__builtin_cpu_supports("avx512f") || run_avx512(); }

const struct check vector_checks[] = {
    {"sse", check_sse, {{"sse_arguments", 1}}},
    {"avx", check_avx, {{0}}},
    {"avx2", check_avx2, {{0}}},
    {"avx512", check_avx512, {{0}}},
    {0},
};
