// Spins through a thousand functions and watches the time stamp counter, as who is stopped sees it. The
// file (first argument) is shared with whoever asks: its first word says which period this is, and the
// word behind the first with that number has its longest gap, in ticks.
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <x86intrin.h>

#define BYTES 4096
#define PERIODS (BYTES / sizeof(uint64_t) - 1)
#define CALLS 10

#define ONE(n)                                                                                                         \
    __attribute__((noinline)) long watched_##n(long x) {                                                               \
        __asm__ volatile("" : "+r"(x));                                                                                \
        return 3 * x + 1##n;                                                                                           \
    }
#define NAME(n) watched_##n,
#define TEN(of, n) of(n##0) of(n##1) of(n##2) of(n##3) of(n##4) of(n##5) of(n##6) of(n##7) of(n##8) of(n##9)
#define HUNDRED(of, n)                                                                                                 \
    TEN(of, n##0) TEN(of, n##1) TEN(of, n##2) TEN(of, n##3) TEN(of, n##4)                                              \
    TEN(of, n##5) TEN(of, n##6) TEN(of, n##7) TEN(of, n##8) TEN(of, n##9)
#define THOUSAND(of)                                                                                                   \
    HUNDRED(of, 0) HUNDRED(of, 1) HUNDRED(of, 2) HUNDRED(of, 3) HUNDRED(of, 4)                                         \
    HUNDRED(of, 5) HUNDRED(of, 6) HUNDRED(of, 7) HUNDRED(of, 8) HUNDRED(of, 9)

THOUSAND(ONE)

static long (*const all[])(long) = {THOUSAND(NAME)};

int main(int argc, char **argv) {
    const char *ready = getenv("READY_FILE");
    int file = argc == 2 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
    if (!ready || file < 0 || ftruncate(file, BYTES)) return 2;
    volatile uint64_t *shared = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (shared == MAP_FAILED) return 3;
    FILE *written = fopen(ready, "w");
    if (!written || fclose(written)) return 4;
    size_t next = 0;
    long x = 1;
    for (uint64_t last = __rdtsc();;) {
        for (int n = 0; n < CALLS; n++, next = (next + 1) % (sizeof all / sizeof *all)) x = all[next](x);
        uint64_t now = __rdtsc(), period = shared[0];
        if (period < PERIODS && now - last > shared[1 + period]) shared[1 + period] = now - last;
        last = now;
    }
}
