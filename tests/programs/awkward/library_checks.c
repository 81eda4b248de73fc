/* What only glibc has, or only dynamic programs: IFUNC, dlsym(RTLD_NEXT), backtrace. */
#define _GNU_SOURCE
#include "awkward.h"
#include <stdlib.h>
#if defined(__GLIBC__) && !defined(MUSL)
#include <dlfcn.h>
#include <execinfo.h>

static long chosen(long x) { return x + 1000; }
static long (*choose(void))(long) { return chosen; }
long chosen_at_start(long) __attribute__((ifunc("choose")));
static int check_ifunc(void) { return chosen_at_start(5) == 1005; }

SEALED int walks_its_stack(void) {
  void *frames[8];
  return backtrace(frames, 8);
}
static int check_backtrace(void) { return walks_its_stack() >= 1; }

#ifndef STATIC
/* dlsym finds the next module by its return address. */
SEALED void *looks_for_next(const char *name) {
  void *found = dlsym(RTLD_NEXT, name);
  HERE();
  return found;
}
static int check_dlsym(void) { return looks_for_next("labs") == dlsym(RTLD_DEFAULT, "labs"); }
#endif
#endif

const struct check library_checks[] = {
#if defined(__GLIBC__) && !defined(MUSL)
    {"ifunc", check_ifunc, {{0}}},
    {"backtrace", check_backtrace, {{0}}},
#ifndef STATIC
    {"dlsym", check_dlsym, {{"looks_for_next", 1}}},
#endif
#endif
    {0},
};
