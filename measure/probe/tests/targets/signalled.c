// "signals": one thread gets queued signals and counts them. "threads": threads come and go.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static atomic_bool end;
static atomic_bool nothing_follows;
static atomic_ulong handled;
static unsigned long sent;

static void on_signal(int unused) {
    (void)unused;
    handled++;
}

#define AT_ONCE 64
static atomic_int alive;

// Long enough to be seen by whoever looks at a process that ought to stand still.
static void *brief(void *unused) {
    usleep(20000);
    alive--;
    return unused;
}

static void *make(void *unused) {
    pthread_t thread;
    while (!end) {
        if (alive++ >= AT_ONCE || pthread_create(&thread, NULL, brief, NULL))
            alive--;
        else
            pthread_detach(thread);
    }
    return unused;
}

// Lives on its processor: where it is stopped, a signal is on its way more often than not.
static void *spin(void *unused) {
    for (volatile unsigned long n = 0; !nothing_follows; n++)
        ;
    // What is still on its way is handled before this returns. A thread that ends blocks signals
    // first (glibc's start_thread), and what comes then is nobody's.
    getppid();
    return unused;
}

static void *send(void *to) {
    union sigval none = {0};
    while (!end) {
        // The queue is finite: never more than a few wait.
        if (sent - handled < 8) sent += pthread_sigqueue(*(pthread_t *)to, SIGRTMIN, none) == 0;
    }
    return NULL;
}

int main(int argc, char **argv) {
    int signals = argc > 1 && !strcmp(argv[1], "signals");
    pthread_t threads[2];
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    if (sigaction(SIGRTMIN, &action, NULL)) return 3;
    if (pthread_create(&threads[0], NULL, signals ? spin : make, NULL)) return 3;
    if (pthread_create(&threads[1], NULL, signals ? send : make, &threads[0])) return 3;
    puts("ready");
    fflush(stdout);
    getchar();
    end = 1;
    if (pthread_join(threads[1], NULL)) return 4;
    nothing_follows = 1;
    if (pthread_join(threads[0], NULL)) return 4;
    if (signals && handled != sent) fprintf(stderr, "%lu of %lu signals\n", handled, sent);
    return signals && (handled != sent || sent == 0);
}
