/* A caller of many short functions, as fast as it can: what it takes is mostly what its calls cost.
   The program times its batches itself.
   stdin: a number of batches a line; stdout: "ready", then the median of ticks that a caller takes. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <x86intrin.h>

#define CALLS 200
#define BATCH 64

static uint64_t table[1024];

__attribute__((noinline, noclone)) static uint64_t cost_mix(uint64_t x)
{
    return (x ^ x >> 7) * 0x9e3779b97f4a7c15;
}

__attribute__((noinline, noclone)) static uint64_t cost_add(uint64_t x)
{
    return x + (x << 3 | 1);
}

__attribute__((noinline, noclone)) static uint64_t cost_look(uint64_t x)
{
    return x ^ table[x & 1023];
}

__attribute__((noinline, noclone)) static uint64_t cost_caller(uint64_t x)
{
    for (int i = 0; i < CALLS; i += 4)
        x = cost_add(cost_look(cost_mix(cost_add(x))));
    return x;
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

int main(void)
{
    uint64_t *ticks = NULL, x = 1;
    long batches;
    for (int i = 0; i < 1024; i++)
        table[i] = x = x * 6364136223846793005 + 1442695040888963407;
    puts("ready");
    fflush(stdout);
    while (scanf("%ld", &batches) == 1) {
        ticks = realloc(ticks, batches * sizeof *ticks);
        for (long b = 0; b < batches; b++) {
            uint64_t from = __rdtsc();
            for (int i = 0; i < BATCH; i++)
                x = cost_caller(x);
            ticks[b] = __rdtsc() - from;
        }
        qsort(ticks, batches, sizeof *ticks, ascending);
        printf("%.1f\n", (double)ticks[batches / 2] / BATCH);
        fflush(stdout);
    }
    return x == 0;
}
