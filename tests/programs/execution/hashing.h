// A random sequence, a hash, and the conversation of the two programs here.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const uint64_t START = 0xcbf29ce484222325;

// Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (SplitMix64).
static uint64_t next(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

// FNV-1a.
static uint64_t add(uint64_t hash, const void *data, size_t length) {
    const unsigned char *bytes = data;
    for (size_t i = 0; i < length; i++) hash = (hash ^ bytes[i]) * 0x100000001b3;
    return hash;
}

static int answer(void (*run)(uint64_t seed, uint64_t rounds)) {
    const char *ready = getenv("READY_FILE");
    FILE *file = ready ? fopen(ready, "w") : NULL;
    if (file) fclose(file);
    uint64_t seed, rounds;
    while (scanf(" run %" SCNu64 " %" SCNu64, &seed, &rounds) == 2) {
        run(seed, rounds);
        puts("end");
        fflush(stdout);
    }
    return 0;
}
