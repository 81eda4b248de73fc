/* What compilers make of C: switches, interpreters, aggregates, floating point, splits. */
#include "awkward.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

SEALED long recursive(long n) { return n ? n + recursive(n - 1) : 0; }
static int check_recursive(void) { return recursive(2999) == 3000L * 2999 / 2; }

#ifndef __clang__
static int check_nested(void) {
  long base = OPAQUE(30L);
  SEALED long nested(long x) { return base + x; }
  return nested(12) == 42;
}
#endif

SEALED long dense_switch(long x, long y) {
  switch (x) {
  case 0: return y + 3;
  case 1: return y * 5;
  case 2: return y - 7;
  case 3: return y ^ 0x55;
  case 4: return y << 2;
  case 5: return y >> 1;
  case 6: return ~y;
  case 7: return y | 0x100;
  case 8: return y & 0xf;
  case 9: return y * y;
  default: return -1;
  }
}
static int check_dense_switch(void) {
  static const long expected[] = {103, 500, 93, 49, 400, 50, -101, 356, 4, 10000, -1};
  for (long i = 0; i < 11; i++)
    if (dense_switch(i, 100) != expected[i])
      return 0;
  return 1;
}

/* A label table of its own: the addresses of its code are data. */
SEALED long interpreter(const unsigned char *code) {
  static const void *const labels[] = {&&add, &&twice, &&minus, &&jump_if, &&stop};
  long value = 0;
  unsigned rounds = 0;
#define NEXT() goto *labels[*code++]
  NEXT();
add:
  value += *code++;
  NEXT();
twice:
  value *= 2;
  NEXT();
minus:
  value -= 1;
  NEXT();
jump_if:
  code += ++rounds < 50 ? -(long)*code : 1;
  NEXT();
stop:
  return value;
}
static int check_interpreter(void) {
  /* 50 times + 3, then doubled, less one */
  static const unsigned char code[] = {0, 3, 3, 3, 1, 2, 4};
  return interpreter(code) == 299;
}

static jmp_buf jump;
SEALED void jumps_out(int n) {
  if (n)
    jumps_out(n - 1);
  else
    longjmp(jump, 42);
  HERE();
}
SEALED int sets_and_catches(int depth) {
  volatile int seen = 5;
  int got = setjmp(jump);
  if (!got) {
    seen = 6;
    jumps_out(depth);
    return -1;
  }
  return got + seen;
}
static int check_longjmp(void) { return sets_and_catches(4) == 48; }

struct big { long v[9]; };
SEALED struct big returns_struct(long x) {
  struct big b;
  for (int i = 0; i < 9; i++)
    b.v[i] = x * i;
  return b;
}
struct two { long a; double b; };
SEALED struct two returns_in_registers(long a, double b) { return (struct two){a + 1, b * 2}; }
static int check_structs(void) {
  struct big b = returns_struct(3);
  struct two t = returns_in_registers(4, 2.5);
  return b.v[0] == 0 && b.v[8] == 24 && t.a == 5 && t.b == 5.0;
}

SEALED long double x87(long double a, long double b) { return a * b + 0.125L; }
static int check_x87(void) { return x87(3.0L, 1.0L / 1024) == 3.0L / 1024 + 0.125L; }

SEALED double eight_floats(double a, float b, double c, float d, double e, float f, double g,
                           float h) {
  return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h;
}
static int check_eight_floats(void) { return eight_floats(1, 2, 3, 4, 5, 6, 7, 8) == 204; }

SEALED double variadic(int n, ...) {
  va_list list;
  va_start(list, n);
  double sum = 0;
  for (int i = 0; i < n; i++)
    sum += i & 1 ? (double)va_arg(list, long) : va_arg(list, double);
  va_end(list);
  return sum;
}
static int check_variadic(void) {
  return variadic(12, 0.5, 1L, 1.5, 2L, 2.5, 3L, 3.5, 4L, 4.5, 5L, 5.5, 6L) == 39.0;
}

SEALED long many_arguments(long a, long b, long c, long d, long e, long f, long g, long h, long i,
                           long j, long k, long l, long m, long n, long o, long p) {
  return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k +
         12 * l + 13 * m + 14 * n + 15 * o + 16 * p;
}
static int check_many_arguments(void) {
  return many_arguments(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16) == 1496;
}

SEALED long red_zone_c(long a, long b) {
  volatile long spill[6] = {a, b, a + b, a - b, a * b, a ^ b};
  long sum = 0;
  for (int i = 0; i < 6; i++)
    sum = sum * 3 + spill[i];
  return sum;
}
static int check_red_zone_c(void) {
  long expected = 0, v[6] = {9, 4, 13, 5, 36, 13};
  for (int i = 0; i < 6; i++)
    expected = expected * 3 + v[i];
  return red_zone_c(9, 4) == expected;
}

static volatile unsigned cold_runs;
__attribute__((cold, noinline)) static void rarely(void) { cold_runs++; }
SEALED long hot_and_cold(long x) {
  if (__builtin_expect(x > 1000, 0)) {
    rarely();
    x = x * 3 - 1;
    rarely();
    return x;
  }
  return x + 1;
}
static int check_hot_and_cold(void) {
  unsigned before = cold_runs;
  return hot_and_cold(5) == 6 && hot_and_cold(2000) == 5999 && cold_runs == before + 2;
}

__attribute__((noreturn, cold, noinline)) static void leaves_for_good(int n) { longjmp(jump, n); }
/* Its last instruction is a call that does not return. */
SEALED long ends_in_noreturn(int n) {
  if (n == 0)
    return 5;
  leaves_for_good(n);
}
static int check_noreturn(void) {
  int got = setjmp(jump);
  if (got)
    return got == 3;
  if (ends_in_noreturn(0) != 5)
    return 0;
  ends_in_noreturn(3);
  return 0;
}

SEALED long by_two_names(long x) { return x ^ 0x77; }
long second_name(long) __attribute__((alias("by_two_names")));
static int check_alias(void) { return by_two_names(1) == 0x76 && second_name(2) == 0x75; }

SEALED int compares(const void *a, const void *b) {
  return *(const int *)a - *(const int *)b;
}
static int check_callback(void) {
  int v[] = {5, 3, 9, 1, 7, 2};
  qsort(v, 6, sizeof *v, compares);
  return v[0] == 1 && v[2] == 3 && v[5] == 9;
}

static _Thread_local long general = 1, initial __attribute__((tls_model("initial-exec"))) = 2;
SEALED long thread_local_storage(long x) {
  general += x;
  initial += 2 * x;
  return general * 1000 + initial;
}
static int check_tls(void) {
  general = 1;
  initial = 2;
  return thread_local_storage(4) == 5010 && thread_local_storage(-4) == 1002;
}

const struct check language_checks[] = {
    {"recursive", check_recursive, {{0}}},
#ifndef __clang__
    {"nested", check_nested, {{0}}},
#endif
    {"dense_switch", check_dense_switch, {{"dense_switch", 11}}},
    {"interpreter", check_interpreter, {{"interpreter", 1}}},
    {"longjmp", check_longjmp, {{"sets_and_catches", 1}}},
    {"structs", check_structs, {{"returns_struct", 1}, {"returns_in_registers", 1}}},
    {"x87", check_x87, {{"x87", 1}}},
    {"eight_floats", check_eight_floats, {{"eight_floats", 1}}},
    {"variadic", check_variadic, {{"variadic", 1}}},
    {"many_arguments", check_many_arguments, {{"many_arguments", 1}}},
    {"red_zone_c", check_red_zone_c, {{"red_zone_c", 1}}},
    {"hot_and_cold", check_hot_and_cold, {{"hot_and_cold", 2}}},
    {"noreturn", check_noreturn, {{"ends_in_noreturn", 2}}},
    {"alias", check_alias, {{"by_two_names", 2}}},
    {"callback", check_callback, {{0}}},
    {"tls", check_tls, {{"thread_local_storage", 2}}},
    {0},
};
