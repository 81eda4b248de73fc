// Children that are forked while their parent is measured. "elsewhere": also by a system call, and in a pid namespace. "leave": it ends before the last of them. "abandon": before one that
// stays until SIGTERM. "wait": it begins with
// a line on stdin, and ends with another one; meanwhile a child stays.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int go_on = 1;
static unsigned idle_ms;

__attribute__((noipa)) unsigned long work(unsigned long n) {
    return 3 * n + 1;
}

static void fail(const char *what) {
    perror(what);
    _exit(9);
}

static void times(unsigned long n) {
    for (unsigned long k = 0; k < n; k++)
        if (work(k) != 3 * k + 1) _exit(8);
}

static void *thread(void *unused) {
    times(50);
    return unused;
}

static pid_t child(void (*body)(void)) {
    pid_t pid = fork();
    if (pid < 0) fail("fork");
    if (pid == 0) {
        body();
        _exit(0);
    }
    return pid;
}

static void wait_for(pid_t pid) {
    int status;
    if (waitpid(pid, &status, 0) != pid || status != 0) _exit(7);
}

static void short_one(void) {
    times(100);
}

static void with_a_thread(void) {
    pthread_t one;
    times(200);
    if (pthread_create(&one, NULL, thread, NULL) || pthread_join(one, NULL)) fail("thread");
}

static void of_a_child(void) {
    times(400);
}

static void forks_again(void) {
    times(300);
    wait_for(child(of_a_child));
}

static void runs_another(void) {
    times(500);
    execl("/bin/true", "true", NULL);
    fail("exec");
}

static void end(int unused) {
    (void)unused;
    go_on = 0;
}

static void stays(void) {
    signal(SIGTERM, end);
    if (idle_ms) usleep(idle_ms * 1000);
    times(600);
    dprintf(1, "%d\n", getpid());
    while (go_on) {
        // A pace at which no ring overflows, however late it is read.
        times(10);
        usleep(1000);
    }
}

static void ready(void) {
    const char *name = getenv("READY_FILE");
    FILE *file = name ? fopen(name, "w") : NULL;
    if (file) fclose(file);
}

static void hear(void) {
    char byte;
    do
        if (read(0, &byte, 1) != 1) fail("read");
    while (byte != '\n');
}

// For several times the 50 ms after which rings of threads that are gone are given to others.
static void slowly(void) {
    for (int n = 0; n < 70; n++) {
        times(10);
        usleep(5000);
    }
}

int main(int argc, char **argv) {
    void (*bodies[])(void) = {short_one, with_a_thread, forks_again, runs_another};
    int waits = argc > 1 && !strcmp(argv[1], "wait");
    if (waits) {
        ready();
        hear();
    }
    times(1000);
    for (int n = 0; n < 4; n++) wait_for(child(bodies[n]));
    if (waits) {
        pid_t stayed = child(stays);
        hear();
        kill(stayed, SIGTERM);
        wait_for(stayed);
    } else if (argc > 1 && !strcmp(argv[1], "elsewhere")) {
        pid_t raw = syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
        if (raw == 0) {
            slowly();
            _exit(0);
        }
        if (raw < 0 || unshare(CLONE_NEWPID)) fail("elsewhere");
        pid_t namespaced = child(slowly);
        wait_for(raw);
        wait_for(namespaced);
        _exit(0);
    } else if (argc > 1 && !strcmp(argv[1], "abandon")) {
        // Several times the 50 ms after which nobody would be taken to be left.
        idle_ms = 200;
        child(stays);
        _exit(0);
    } else if (argc > 1 && !strcmp(argv[1], "leave")) {
        // As a daemon begins: the parent is gone, and its child works.
        child(forks_again);
        _exit(0);
    }
    times(1000);
    return 0;
}
