// So many threads that wait for SIGUSR1, call the measured function more often than a ring of 2 MiB
// has room for, and end. The second argument is the file that says that they are there.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS_MAX 64
#define CALLS 70000

__attribute__((noinline)) long work(long n) {
    __asm__ volatile("" : "+r"(n));
    return 3 * n + 1;
}

static sigset_t start;

static void *worker(void *barrier) {
    pthread_barrier_wait(barrier);
    long sum = 0;
    for (long n = 0; n < CALLS; n++) sum += work(n);
    return (void *)sum;
}

int main(int argc, char **argv) {
    int threads = argc > 2 ? atoi(argv[1]) : 0, signal;
    if (threads < 1 || threads > THREADS_MAX) return 2;
    pthread_barrier_t barrier;
    pthread_t all[THREADS_MAX];
    pthread_attr_t attributes;
    sigemptyset(&start);
    sigaddset(&start, SIGUSR1);
    sigprocmask(SIG_BLOCK, &start, NULL);
    pthread_barrier_init(&barrier, NULL, threads + 1);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 65536);
    for (int i = 0; i < threads; i++)
        if (pthread_create(&all[i], &attributes, worker, &barrier)) return 3;
    FILE *ready = fopen(argv[2], "w");
    if (!ready || fclose(ready)) return 4;
    sigwait(&start, &signal);
    pthread_barrier_wait(&barrier);
    long sum = 0;
    for (int i = 0; i < threads; i++) {
        void *result;
        pthread_join(all[i], &result);
        sum += (long)result;
    }
    long each = 3L * CALLS * (CALLS - 1) / 2 + CALLS;
    return sum == threads * each ? 0 : 5;
}
