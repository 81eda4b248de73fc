// A thread that is held where a test wants it: each byte on stdin holds it or lets it go.
// "inside": in a system call of the function that is measured. "anywhere": in a signal handler that
// interrupted the function, or its probes, at any instruction.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int gate[2];
static atomic_bool end;
static unsigned long calls, wrong;

__attribute__((noipa)) unsigned long one_step(unsigned long n) {
    return 3 * n + 1;
}

// Without libc: whoever returns from the read is still in this function.
__attribute__((noipa)) long wait_inside(int fd) {
    char byte;
    long n;
    do
        __asm__ volatile("syscall"
                         : "=a"(n)
                         : "a"(SYS_read), "D"(fd), "S"(&byte), "d"(1)
                         : "rcx", "r11", "memory");
    while (n == -4);
    return n + 10;
}

static void say(const char *line) {
    if (write(1, line, strlen(line)) < 0) _exit(5);
}

static void hold(int unused) {
    (void)unused;
    char byte;
    say("held\n");
    while (read(gate[0], &byte, 1) < 0)
        ;
    say("let go\n");
}

static void *call_on(void *unused) {
    for (; !end; calls++) wrong += one_step(calls) != 3 * calls + 1;
    return unused;
}

static int inside(void) {
    for (;;) {
        long n = wait_inside(0);
        if (n == 10) return 0;
        if (n != 11) return 4;
        say("again\n");
    }
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "inside")) {
        say("ready\n");
        return inside();
    }
    pthread_t thread;
    struct sigaction action = {.sa_handler = hold};
    if (sigaction(SIGUSR1, &action, NULL) || pipe(gate)) return 3;
    if (pthread_create(&thread, NULL, call_on, NULL)) return 3;
    say("ready\n");
    char byte;
    for (int held = 0; read(0, &byte, 1) == 1; held = !held)
        if (held ? write(gate[1], "x", 1) != 1 : pthread_kill(thread, SIGUSR1) != 0) return 3;
    end = 1;
    return pthread_join(thread, NULL) || wrong != 0 ? 4 : 0;
}
