/* What the generated sources and the harness share. */
#ifndef HARNESS_H
#define HARNESS_H

/* Runs `n` rounds of a phase; x goes in, the last result comes out, so nothing can be left out. */
typedef long phase_function(long x, long n);

struct phase {
    const char *name;
    phase_function *run;
    long calls_per_round; /* calls of bench functions in one round; 0 = a floor, per round */
};

extern const struct phase phases[]; /* ends with a null name */

long round_for_threads(long x); /* one round over the smallest functions, for `threads` */

static inline unsigned long ticks(void)
{
    unsigned lo, hi;
    __asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi)::"memory");
    return (unsigned long)hi << 32 | lo;
}
#endif
