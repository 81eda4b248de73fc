/* What no tool can go below on this machine: the clock itself, and the same two 16-byte records
 * written by hand around the call. */
#include "harness.h"

long FLOOR_CALLEE(long);

long floor_empty_loop(long x, long n)
{
    while (n--)
        __asm__ volatile("" : "+r"(x));
    return x;
}

long floor_two_rdtsc(long x, long n)
{
    while (n--) {
        ticks();
        ticks();
        __asm__ volatile("" : "+r"(x));
    }
    return x;
}

/* 100 core cycles, whatever the clock of the core. Not of an immediate: newer cores fold those
 * while renaming. */
long floor_100_adds(long x, long n)
{
    while (n--)
        __asm__ volatile(".rept 100\n\tadd %0, %0\n\t.endr" : "+r"(x));
    return x;
}

struct record {
    unsigned long tsc;
    unsigned id, stack;
};
#define RECORDS 4096 /* 64 KiB */
static struct record ring[RECORDS];

long floor_inline_pair(long x, long n)
{
    unsigned long at = 0;
    while (n--) {
        struct record *r = &ring[at++ % RECORDS];
        r->tsc = ticks();
        r->id = 0;
        x = FLOOR_CALLEE(x);
        r = &ring[at++ % RECORDS];
        r->tsc = ticks();
        r->id = 1;
    }
    return x;
}
