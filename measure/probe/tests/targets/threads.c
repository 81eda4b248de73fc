// So many threads that wait; with 0 of them, all memory is locked. At each byte from
// stdin the main thread calls the measured function once.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

__attribute__((noinline)) unsigned kept_function(unsigned n) {
    unsigned sum = 0;
    while (n) {
        sum += n--;
        __asm__ volatile("" : "+r"(sum));
    }
    return sum;
}

static void *wait_for_ever(void *unused) {
    for (;;) pause();
    return unused;
}

int main(int argc, char **argv) {
    setbuf(stdout, NULL);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (argc < 2 || pthread_attr_setstacksize(&attributes, 64 << 10)) return 2;
    for (long n = atol(argv[1]); n > 0; n--) {
        pthread_t thread;
        if (pthread_create(&thread, &attributes, wait_for_ever, NULL)) return 3;
    }
    if (argv[1][0] == '0' && mlockall(MCL_CURRENT | MCL_FUTURE)) return 4;
    puts("ready");
    for (char byte; read(0, &byte, 1) == 1;) puts(kept_function(100) == 5050 ? "OK" : "wrong");
    return 0;
}
