/* A check calls one awkward function and compares what comes back. Its calls a round are known,
 * so that a recording can be compared with them. */
#ifndef AWKWARD_H
#define AWKWARD_H

#include <stddef.h>

#define NOINLINE __attribute__((noinline))
#ifdef __clang__
#define SEALED __attribute__((noinline))
#else
/* No clones, no knowledge of the body at the caller. */
#define SEALED __attribute__((noipa))
#endif
/* Not to be merged, moved or computed at compile time. */
#define HERE() __asm__ volatile("" ::: "memory")
#define OPAQUE(x) ({ __typeof__(x) opaque_ = (x); __asm__ volatile("" : "+r"(opaque_)); opaque_; })

struct calls {
  const char *function;
  unsigned a_round;
};

struct check {
  const char *name;
  /* 1 when everything came back right. */
  int (*right)(void);
  /* Functions whose calls in a round of this check are exactly known; ends with a null name. */
  struct calls calls[4];
};

/* Each list ends with a null name. */
extern const struct check shape_checks[], language_checks[], vector_checks[], stack_checks[],
    process_checks[], library_checks[];

#endif
