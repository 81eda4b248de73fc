// A function of which the compiler moves an instruction out of the loop that it is inlined into: 20,000 calls.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static volatile uint64_t rules[64];

__attribute__((noipa)) uint64_t miss(uint64_t key) {
    return key * 0x9e3779b97f4a7c15ull + 1;
}

__attribute__((noipa)) int next(uint64_t n, uint64_t packets) {
    return n < packets;
}

static inline __attribute__((always_inline)) uint64_t classify(uint64_t key) {
    for (unsigned k = 0; k < 4; k++) {
        key ^= rules[(key + k) & 63];
        key *= 0xff51afd7ed558ccdull;
        key ^= key >> 33;
        if (key & 1) key += miss(key);
    }
    return key;
}

__attribute__((noipa)) uint64_t forward(uint64_t packets) {
    uint64_t key = 1;
    for (uint64_t n = 0; next(n, packets); n++) {
        key = classify(key);
        key ^= miss(key);
    }
    return key;
}

int main(int argc, char **argv) {
    printf("%lx\n", (unsigned long)forward(argc > 1 ? strtoull(argv[1], NULL, 0) : 20000));
    return 0;
}
