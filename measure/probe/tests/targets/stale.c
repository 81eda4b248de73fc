// Threads that call, and then wait in a frame that covers what their calls left on the stack: old
// return addresses, of probes too, lie in the live part of their stacks.
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#define THREADS 4

static int gate[2], said[2];

__attribute__((noipa)) unsigned long one_step(unsigned long n) {
    return 3 * n + 1;
}

__attribute__((noipa)) static int wait_above(void) {
    char old[1024];
    __asm__ volatile("" : : "r"(old) : "memory");
    return write(said[1], "x", 1) == 1 && read(gate[0], old + sizeof old - 1, 1) == 1;
}

static void *call_and_wait(void *unused) {
    do
        if (one_step(2) != 7) return NULL;
    while (wait_above());
    return unused;
}

int main(void) {
    pthread_t threads[THREADS];
    if (pipe(gate) || pipe(said)) return 3;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(threads + i, NULL, call_and_wait, NULL)) return 3;
    do {
        char byte;
        for (int i = 0; i < THREADS; i++)
            if (read(said[0], &byte, 1) != 1) return 3;
        puts("waiting");
        fflush(stdout);
        if (getchar() == EOF) return 0;
    } while (write(gate[1], "xxxx", THREADS) == THREADS);
    return 3;
}
