// A timer's signals, handled on an alternate stack by a handler that does not block them. Says "round" for each byte: no
// handler runs then.
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <time.h>
#include <unistd.h>

#define PERIOD_NS 100000
// Handlers that may interrupt each other: a machine that is busy delays some.
#define DEEPEST 128
#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

static void on_timer(int unused) {
    (void)unused;
}

int main(void) {
    // What a signal's frame takes at most, with all registers of this processor.
    unsigned long frame = getauxval(AT_MINSIGSTKSZ);
    size_t size = DEEPEST * (frame ? frame : 4096);
    stack_t stack = {.ss_sp = malloc(size), .ss_size = size};
    struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_ONSTACK | SA_NODEFER | SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    struct itimerspec often = {{0, PERIOD_NS}, {0, PERIOD_NS}};
    timer_t timer;
    if (!stack.ss_sp || sigaltstack(&stack, NULL) || sigaction(SIGUSR1, &action, NULL)) return 3;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) || timer_settime(timer, 0, &often, NULL)) return 3;
    puts("ready");
    fflush(stdout);
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    for (char byte;;) {
        // Lives on its processor: a signal is taken as soon as it comes.
        for (volatile int n = 0; n < 1000; n++)
            ;
        if (poll(&input, 1, 0) < 1) continue;
        if (read(STDIN_FILENO, &byte, 1) != 1) return 0;
        puts("round");
        fflush(stdout);
    }
}
