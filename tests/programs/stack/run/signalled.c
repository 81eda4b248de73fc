// A signal that comes while a call looks for something to give, before it sleeps: the call ends (EINTR), as by one that comes later.
// signalled ADDRESS: of the stack. The library reads the clock where it looks: the n-th reading of a call raises the signal.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int readings, raise_at, handled, raised;

static void handle(int signal) {
    (void)signal;
    handled++;
}

// Before the C library's.
int clock_gettime(clockid_t clock, struct timespec *into) {
    // What is read behind the sleep is none of it.
    if (raise_at && !handled && ++readings == raise_at) {
        raised = 1;
        syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR1);
    }
    return (int)syscall(SYS_clock_gettime, clock, into);
}

static int taken(const char *name, int fd) {
    char byte;
    if (strcmp(name, "accept") == 0) return accept(fd, NULL, NULL);
    if (strcmp(name, "recvmmsg") == 0) {
        struct iovec part = {&byte, 1};
        struct mmsghdr message = {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}};
        return recvmmsg(fd, &message, 1, 0, NULL);
    }
    return (int)recv(fd, &byte, 1, 0);
}

static void each(const char *name, int fd) {
    int ended = 0, slept = 0;
    // The first reading is of the attempt without which nothing is known of waiting.
    for (int at = 2; at < 12; at++) {
        struct itimerval late = {.it_value = {.tv_usec = 500000}}, none = {0};
        readings = handled = raised = 0;
        raise_at = at;
        setitimer(ITIMER_REAL, &late, NULL);
        int got = taken(name, fd), error = errno;
        raise_at = 0;
        setitimer(ITIMER_REAL, &none, NULL);
        if (!raised) break;
        if (got != -1 || error != EINTR || handled != 1) slept++;
        else ended++;
    }
    printf("%s: %s, slept on %d\n", name, ended ? "EINTR" : "never asked", slept);
}

int main(int count, char **words) {
    struct sigaction action = {.sa_handler = handle};
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(7100)};
    if (count != 2 || inet_pton(AF_INET, words[1], &own.sin_addr) != 1) return 2;
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
    int datagrams = socket(AF_INET, SOCK_DGRAM, 0), listener = socket(AF_INET, SOCK_STREAM, 0), one = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(datagrams, (void *)&own, sizeof own) != 0 || bind(listener, (void *)&own, sizeof own) != 0 || listen(listener, 1) != 0) return 3;
    if (connect(one, (void *)&own, sizeof own) != 0) return 4;
    int other = accept(listener, NULL, NULL);
    each("recv", datagrams);
    each("recvmmsg", datagrams);
    each("accept", listener);
    each("recv", one);
    return other < 0;
}
