// Calls one function where there is no ring for it: with a gs base of its own (argument "foreign"),
// or in more threads than there are rings.
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((noipa)) unsigned long one_step(unsigned long n) {
    return 3 * n + 1;
}

static unsigned long wrong;

static void *thousand(void *unused) {
    for (unsigned long n = 0; n < 1000; n++) wrong += one_step(n) != 3 * n + 1;
    return unused;
}

// What a context would hold are addresses that cannot be read.
static void foreign(void) {
    static unsigned long block[8];
    memset(block, 0x41, sizeof block);
    unsigned long before = 0, after = 0;
    wrong += syscall(SYS_arch_prctl, ARCH_GET_GS, &before) != 0;
    wrong += syscall(SYS_arch_prctl, ARCH_SET_GS, block) != 0;
    thousand(NULL);
    wrong += syscall(SYS_arch_prctl, ARCH_GET_GS, &after) != 0 || after != (unsigned long)block;
    wrong += syscall(SYS_arch_prctl, ARCH_SET_GS, before) != 0;
}

int main(int argc, char **argv) {
    puts("ready");
    fflush(stdout);
    getchar();
    if (argc > 1 && !strcmp(argv[1], "foreign")) foreign();
    for (int i = 0; argc > 1 && !strcmp(argv[1], "threads") && i < 3; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, thousand, NULL) || pthread_join(thread, NULL)) return 3;
    }
    printf("%lu wrong\n", wrong);
    fflush(stdout);
    getchar();
    return wrong != 0;
}
