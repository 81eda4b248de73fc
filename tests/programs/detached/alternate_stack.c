// Signal handlers on an alternate stack that interrupt each other, amid probes: what a deep one leaves there stays for long.
// With SIGTERM it ends.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

static volatile int go_on = 1;
static volatile sig_atomic_t depth;

__attribute__((noipa)) unsigned long leaf(unsigned long n) {
    return 3 * n + 1;
}

__attribute__((noipa)) void measured(void) {
    for (unsigned long n = 0; n < 3000; n++)
        if (leaf(n) != 3 * n + 1) _exit(8);
}

static void interrupt(int unused) {
    (void)unused;
    if (depth > 3) return;
    depth++;
    measured();
    depth--;
}

static void *beside(void *unused) {
    while (go_on) measured();
    return unused;
}

static void end(int unused) {
    (void)unused;
    go_on = 0;
}

int main(void) {
    stack_t stack = {.ss_sp = malloc(1 << 18), .ss_size = 1 << 18};
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_ONSTACK | SA_NODEFER | SA_RESTART};
    struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
    const char *name = getenv("READY_FILE");
    pthread_t thread;
    if (pthread_create(&thread, NULL, beside, NULL)) return 3;
    if (sigaltstack(&stack, NULL) || sigaction(SIGALRM, &action, NULL) || setitimer(ITIMER_REAL, &often, NULL)) return 3;
    signal(SIGTERM, end);
    FILE *file = name ? fopen(name, "w") : NULL;
    if (file) fclose(file);
    while (go_on) measured();
    return setitimer(ITIMER_REAL, &never, NULL) || pthread_join(thread, NULL);
}
