// Calls that wait, are interrupted, cancelled, or end otherwise than by bytes: what each gives, a line each. ADDRESS is where the
// serving end is.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct sockaddr_in at;
static int listener, served, client;

static const char *said(long result) {
    static char text[64];
    if (result >= 0) snprintf(text, sizeof text, "%ld", result);
    else snprintf(text, sizeof text, "%s", strerrorname_np(errno));
    return text;
}

static void connected(void) {
    client = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(client, (void *)&at, sizeof at)) perror("connect");
    served = accept(listener, 0, 0);
}

static void over(void) { close(client); close(served); }

static volatile int alarms_due, waiter;

static void nothing(int signal) {
    (void)signal;
    alarms_due = 0;
}

/* Until this thread sleeps: the state behind the name (proc(5)). */
static void until_asleep(volatile int *thread) {
    char path[64], text[256];
    for (;;) {
        snprintf(path, sizeof path, "/proc/self/task/%d/stat", *thread);
        FILE *file = *thread ? fopen(path, "r") : 0;
        char *end = file && fgets(text, sizeof text, file) ? strrchr(text, ')') : 0;
        if (file) fclose(file);
        if (end && end[2] == 'S') return;
        sched_yield();
    }
}

/* The first thread, which the alarm is for, if there is one. */
static void until_first_sleeps(void) {
    volatile int first = getpid();
    while (alarms_due) sched_yield();
    until_asleep(&first);
}

static void handled(int flags) {
    struct sigaction action = {.sa_handler = nothing, .sa_flags = flags};
    sigaction(SIGALRM, &action, 0);
}

static void alarm_in_ms(long ms) {
    struct itimerval timer = {.it_value = {0, ms * 1000}};
    alarms_due = 1;
    setitimer(ITIMER_REAL, &timer, 0);
}

static void *send_late(void *what) {
    until_first_sleeps();
    if (send(client, what, strlen(what), 0) < 0) perror("send_late");
    return 0;
}

static void *shut_late(void *what) {
    until_first_sleeps();
    shutdown(*(int *)what, SHUT_RDWR);
    return 0;
}

static void *receive(void *what) {
    char byte;
    waiter = gettid();
    recv(*(int *)what, &byte, 1, 0);
    return "returned";
}

static pthread_t later(void *(*call)(void *), void *what) {
    pthread_t thread;
    pthread_create(&thread, 0, call, what);
    return thread;
}

static void interrupted(int flags, const char *name) {
    char bytes[8];
    connected();
    handled(flags);
    alarm_in_ms(30);
    pthread_t thread = later(send_late, "abc");
    // The alarm is for this thread: the other one has it blocked by nothing, and so is asked to sleep on.
    printf("recv, %s: %s\n", name, said(recv(served, bytes, 8, 0)));
    pthread_join(thread, 0);
    over();
}

int main(int argc, char **argv) {
    (void)argc;
    setvbuf(stdout, 0, _IOLBF, 0);
    at.sin_family = AF_INET;
    at.sin_port = htons(7);
    inet_pton(AF_INET, argv[1], &at.sin_addr);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, 4);
    if (bind(listener, (void *)&at, sizeof at) || listen(listener, 8)) return perror("listen"), 1;
    char bytes[100000];

    connected();
    // In ticks of any kernel.
    struct timeval span = {0, 100000}, read_back;
    socklen_t len = sizeof read_back;
    setsockopt(served, SOL_SOCKET, SO_RCVTIMEO, &span, sizeof span);
    getsockopt(served, SOL_SOCKET, SO_RCVTIMEO, &read_back, &len);
    printf("SO_RCVTIMEO %ld.%06ld\n", (long)read_back.tv_sec, (long)read_back.tv_usec);
    printf("recv with time-out: %s\n", said(recv(served, bytes, 8, 0)));
    send(client, "ab", 2, 0);
    printf("MSG_WAITALL with time-out: %s\n", said(recv(served, bytes, 8, MSG_WAITALL)));
    over();

    connected();
    pthread_t thread = later(send_late, "cdefgh");
    send(client, "ab", 2, 0);
    printf("MSG_WAITALL: %s\n", said(recv(served, bytes, 8, MSG_WAITALL)));
    pthread_join(thread, 0);
    thread = later(shut_late, &served);
    printf("recv, shut down elsewhere: %s\n", said(recv(served, bytes, 8, 0)));
    pthread_join(thread, 0);
    over();

    // The kernel keeps what a call waits on: it goes on when bytes come.
    connected();
    int number = served;
    thread = later(send_late, "x");
    struct pollfd one = {.fd = served, .events = POLLIN};
    printf("poll: %s", said(poll(&one, 1, 5000)));
    printf(" %x\n", one.revents);
    pthread_join(thread, 0);
    over();
    printf("closed: %s\n", said(recv(number, bytes, 1, 0)));

    connected();
    thread = later(receive, &served);
    until_asleep(&waiter);
    void *result;
    pthread_cancel(thread);
    pthread_join(thread, &result);
    printf("recv cancelled: %d\n", result == PTHREAD_CANCELED);
    send(client, "y", 1, 0);
    printf("recv after it: %s\n", said(recv(served, bytes, 1, 0)));
    over();

    connected();
    int flags = fcntl(served, F_GETFL);
    fcntl(served, F_SETFL, flags | O_NONBLOCK);
    printf("O_NONBLOCK %d, the other's %d\n", !!(fcntl(served, F_GETFL) & O_NONBLOCK), !!(fcntl(client, F_GETFL) & O_NONBLOCK));
    printf("recv: %s\n", said(recv(served, bytes, 8, 0)));
    int twin = dup2(served, 200);
    close(served);
    printf("O_NONBLOCK of its twin %d\n", !!(fcntl(twin, F_GETFL) & O_NONBLOCK));
    send(client, "abc", 3, 0);
    one = (struct pollfd){.fd = twin, .events = POLLIN};
    poll(&one, 1, 5000);
    printf("recv of its twin: %s\n", said(read(twin, bytes, 8)));
    served = twin;
    over();

    connected();
    FILE *file = tmpfile();
    for (int n = 0; n < 50000; n++) fputc(n % 251, file);
    fflush(file);
    off_t from = 10;
    printf("sendfile: %s", said(sendfile(client, fileno(file), &from, 40000)));
    printf(" %ld\n", (long)from);
    long got = recv(served, bytes, 40000, MSG_WAITALL), wrong = 0;
    for (long n = 0; n < got; n++) wrong += (unsigned char)bytes[n] != (n + 10) % 251;
    printf("received %ld, wrong %ld\n", got, wrong);
    lseek(fileno(file), 49990, SEEK_SET);
    printf("sendfile to the end: %s\n", said(sendfile(client, fileno(file), 0, 40000)));
    printf("received %ld\n", (long)recv(served, bytes, 10, MSG_WAITALL));
    over();

    connected();
    struct linger reset = {1, 0};
    setsockopt(client, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(client);
    one = (struct pollfd){.fd = served, .events = POLLIN};
    poll(&one, 1, 5000);
    printf("after a reset: poll %x", one.revents);
    printf(" recv %s", said(recv(served, bytes, 1, 0)));
    printf(" again %s", said(recv(served, bytes, 1, 0)));
    printf(" send %s\n", said(send(served, "x", 1, MSG_NOSIGNAL)));
    close(served);

    connected();
    signal(SIGPIPE, SIG_IGN);
    shutdown(served, SHUT_WR);
    printf("write after shutdown: %s\n", said(write(served, "x", 1)));
    signal(SIGPIPE, SIG_DFL);
    pid_t child = fork();
    if (!child) {
        int pair[2];
        socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
        close(pair[0]);
        _exit(write(pair[1], "x", 1) < 0);
    }
    int status;
    waitpid(child, &status, 0);
    printf("a child's SIGPIPE %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    over();

    interrupted(SA_RESTART, "SA_RESTART");
    interrupted(0, "no SA_RESTART");

    connected();
    handled(SA_RESTART);
    alarm_in_ms(30);
    int epoll = epoll_create1(0);
    struct epoll_event event = {EPOLLIN, {0}};
    epoll_ctl(epoll, EPOLL_CTL_ADD, served, &event);
    printf("epoll_wait interrupted: %s\n", said(epoll_wait(epoll, &event, 1, 5000)));
    sigset_t none, alarms;
    sigemptyset(&none);
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    sigprocmask(SIG_BLOCK, &alarms, 0);
    raise(SIGALRM);
    printf("epoll_pwait lets a signal in: %s\n", said(epoll_pwait(epoll, &event, 1, 5000, &none)));
    printf("epoll_wait: %s\n", said(epoll_wait(epoll, &event, 1, 20)));
    raise(SIGALRM);
    struct timespec long_time = {5, 0};
    one = (struct pollfd){.fd = served, .events = POLLIN};
    printf("ppoll lets a signal in: %s\n", said(ppoll(&one, 1, &long_time, &none)));
    sigprocmask(SIG_UNBLOCK, &alarms, 0);
    // Both kinds at a time, and one by one.
    int ends[2];
    if (pipe(ends)) return 1;
    event = (struct epoll_event){EPOLLIN, {.u64 = 1}};
    epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event);
    if (write(ends[1], "p", 1) != 1) return 1;
    send(client, "q", 1, 0);
    one = (struct pollfd){.fd = served, .events = POLLIN};
    poll(&one, 1, 5000);
    struct epoll_event many[4];
    printf("pipe and socket: %s\n", said(epoll_wait(epoll, many, 4, 5000)));
    int seen = 0;
    for (int n = 0; n < 4; n++)
        if (epoll_wait(epoll, many, 1, 5000) == 1) seen |= 1 << many[0].data.u64;
    printf("one at a time: %x\n", seen);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(served, &set);
    FD_SET(ends[0], &set);
    printf("select: %s\n", said(select(500, &set, 0, 0, 0)));
    over();

    // In a time that is none of anybody's: nothing is there to be accepted.
    fcntl(listener, F_SETFL, O_NONBLOCK);
    printf("accept: %s\n", said(accept(listener, 0, 0)));
    printf("connect again: %s\n", said(connect(listener, (void *)&at, sizeof at)));
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    for (int fd = 3; fd < (int)limit.rlim_cur; fd++) close(fd);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    printf("all were closed: %d\n", listener);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, 4);
    printf("bind %s", said(bind(listener, (void *)&at, sizeof at)));
    printf(" listen %s\n", said(listen(listener, 8)));
    connected();
    send(client, "end", 3, 0);
    printf("recv %s\n", said(recv(served, bytes, 3, MSG_WAITALL)));
    return 0;
}
