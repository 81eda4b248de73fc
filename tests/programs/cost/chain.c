/* A body whose instructions wait for each other, called in a loop with nothing else: a processor that reads its clock
   before a body is done shows it too short. The program times its batches itself.
   stdin: a number of batches a line; stdout: "ready", then the median of ticks a call. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <x86intrin.h>

#define BATCH 512
#define STEPS 30

__attribute__((noinline, noclone)) static uint64_t cost_chain(uint64_t x)
{
    for (int i = 0; i < STEPS; i++)
        x = (x ^ x >> 7) * 0x9e3779b97f4a7c15u;
    return x;
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

int main(void)
{
    volatile uint64_t sink;
    uint64_t *ticks = NULL;
    long batches;
    puts("ready");
    fflush(stdout);
    while (scanf("%ld", &batches) == 1) {
        ticks = realloc(ticks, batches * sizeof *ticks);
        for (long b = 0; b < batches; b++) {
            uint64_t x = b, from = __rdtsc();
            for (int i = 0; i < BATCH; i++)
                x = cost_chain(x);
            sink = x;
            ticks[b] = __rdtsc() - from;
        }
        qsort(ticks, batches, sizeof *ticks, ascending);
        printf("%.1f\n", (double)ticks[batches / 2] / BATCH);
        fflush(stdout);
    }
    (void)sink;
    return 0;
}
