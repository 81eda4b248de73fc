/* dlsym, behind jumps in place of calls; and, as a module of its own, who calls that. */
#include <stddef.h>
#define SEALED __attribute__((noinline, noclone))
extern void *dlsym(void *, const char *);
volatile int calls;
#ifndef USER
SEALED void *find(const char *name) { return dlsym((void *)-1L, name); }
SEALED void *find_again(const char *name) { calls++; return find(name); }
SEALED int through_two(void) { return find_again("malloc") != NULL; }
SEALED int through_none(void) { return calls + 1; }
SEALED int through_that(void) { return through_none() + 2; }
#else
extern void *find_again(const char *);
SEALED void *pass_on(const char *name) { return find_again(name); }
SEALED int in_another_module(void) { return pass_on("malloc") != NULL; }
SEALED int unconcerned(void) { return calls + 3; }
#endif
