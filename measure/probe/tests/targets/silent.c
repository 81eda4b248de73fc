// Threads that come and go, one more with each byte of input: the first one makes no call, the others
// a thousand each.
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static int gate[2];

__attribute__((noipa)) unsigned long one_step(unsigned long n) {
    return 3 * n + 1;
}

static void *wait_only(void *unused) {
    char byte;
    if (read(gate[0], &byte, 1) != 1) puts("no byte");
    return unused;
}

static void *thousand(void *unused) {
    for (unsigned long n = 0; n < 1000; n++)
        if (one_step(n) != 3 * n + 1) puts("wrong");
    return unused;
}

int main(void) {
    pthread_t thread;
    if (pipe(gate) || pthread_create(&thread, NULL, wait_only, NULL)) return 3;
    puts("ready");
    fflush(stdout);
    getchar();
    if (write(gate[1], "x", 1) != 1 || pthread_join(thread, NULL)) return 3;
    do {
        puts("gone");
        fflush(stdout);
        if (getchar() == EOF) return 0;
    } while (!pthread_create(&thread, NULL, thousand, NULL) && !pthread_join(thread, NULL));
    return 3;
}
