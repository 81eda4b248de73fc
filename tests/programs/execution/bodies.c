// Runs generated function bodies and says what each did to all registers, the flags and memory:
// one line of name and hash for each, for a line "run SEED ROUNDS" on stdin.
#include "hashing.h"
#include <stdlib.h>
#include <string.h>

struct registers {
    uint64_t general[15], flags;
    uint64_t vector[16][2];
    uint64_t stack_off;
};

struct body {
    void (*function)(void);
    const char *name;
};

void call_body(void (*)(void), const struct registers *, struct registers *);
// In the generated file: all bodies, and the memory that they address relative to rip.
extern const struct body bodies[];
extern const uint64_t bodies_count;
extern unsigned char own_memory[1024];

// What rdi points at; bodies keep within it.
static _Alignas(64) unsigned char memory[4096];

enum { RDI = 6 };

static uint64_t call(const struct body *body, uint64_t *random) {
    struct registers in, out;
    memset(&out, 0, sizeof out);
    uint64_t *words = (uint64_t *)&in;
    for (unsigned i = 0; i < sizeof in / 8; i++) words[i] = next(random);
    // CF, PF, AF, ZF, SF, OF and the interrupt flag.
    in.flags = (in.flags & 0x8d5) | 0x202;
    in.general[RDI] = (uint64_t)memory;
    for (unsigned i = 0; i < sizeof memory / 8; i++) ((uint64_t *)memory)[i] = next(random);
    memset(own_memory, 7, sizeof own_memory);
    call_body(body->function, &in, &out);
    uint64_t hash = add(START, &out, sizeof out);
    hash = add(hash, memory, sizeof memory);
    return add(hash, own_memory, sizeof own_memory);
}

static void round_of_all(uint64_t seed, uint64_t rounds) {
    for (uint64_t i = 0; i < bodies_count; i++) {
        uint64_t random = seed + i + 1, hash = START;
        for (uint64_t n = 0; n < rounds; n++) {
            uint64_t one = call(&bodies[i], &random);
            hash = add(hash, &one, sizeof one);
        }
        printf("%s %016" PRIx64 "\n", bodies[i].name, hash);
    }
}

int main(void) { return answer(round_of_all); }
