// Two coroutines whose stacks lie in one mapping ("private" or "shared" memory, as the argument says):
// the lower one is suspended in the function that is measured, the upper one waits for its input.
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define STACK 65536ul

void switch_to(void **from, void *to);
__asm__(".globl switch_to\n.type switch_to, @function\n"
        "switch_to: push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15\n"
        "mov %rsp, (%rdi); mov %rsi, %rsp\n"
        "pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp; ret\n"
        ".size switch_to, .-switch_to");

static void *starter, *lower, *upper;
static unsigned long steps;

__attribute__((noipa)) void suspended(void) {
    steps++;
    switch_to(&lower, upper);
    steps++;
}

static void run_lower(void) {
    for (;;) suspended();
}

static void run_upper(void) {
    char byte;
    for (const char *line = "ready\n";; line = "back\n") {
        if (write(1, line, strlen(line)) < 0) _exit(5);
        if (read(0, &byte, 1) != 1) _exit(steps % 2 == 1 ? 0 : 4);
        switch_to(&upper, lower);
    }
}

static void *prepare(char *stack, void (*run)(void)) {
    void **sp = (void **)(stack + STACK - 64);
    *--sp = NULL;
    *--sp = (void *)run;
    return sp - 6;
}

int main(int argc, char **argv) {
    int shared = argc > 1 && !strcmp(argv[1], "shared");
    int flags = MAP_ANONYMOUS | (shared ? MAP_SHARED : MAP_PRIVATE);
    char *stacks = mmap(NULL, 2 * STACK, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (stacks == MAP_FAILED) return 3;
    lower = prepare(stacks, run_lower);
    upper = prepare(stacks + STACK, run_upper);
    switch_to(&starter, upper);
}
