/* Sockets at every address, by edge: what comes from the kernel's side (127.0.0.1) and from a peer at PEER to ADDRESS is told once. A line
   each; the same lines on the kernel's stack and on another one that has ADDRESS beside the kernel. With "pairs" as a third word without ends
   of connections. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

#define WATCHDOG_MS 20000
#define PORT 7100
static const char *own, *peer;
static int far, near; /* the peer's socket, and one on loopback */

static struct sockaddr_in at(const char *host, int port) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, host, &to.sin_addr);
    return to;
}

#define SA(to) (struct sockaddr *)&(to), sizeof(to)

static int made(int kind, const char *host, int port) {
    int fd = socket(AF_INET, kind, 0), one = 1;
    struct sockaddr_in to = at(host, port);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, SA(to))) perror("bind"), exit(1);
    return fd;
}

static void say(const char *what, long result) {
    if (result < 0) printf("%s: %s\n", what, strerrorname_np(errno));
    else printf("%s: %ld\n", what, result);
}

static int set_of(int fd, unsigned events) {
    int set = epoll_create1(0);
    struct epoll_event event = {.events = events};
    say("add", epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    return set;
}

static void change(int set, int fd, unsigned events) {
    struct epoll_event event = {.events = events};
    say("change", epoll_ctl(set, EPOLL_CTL_MOD, fd, &event));
}

static void waits(const char *what, int set, int ms) {
    struct epoll_event events[4];
    int found = epoll_wait(set, events, 4, ms);
    say(what, found);
    for (int n = 0; n < found; n++) printf("  %x\n", events[n].events);
}

static void polls(const char *what, int set, int ms) {
    struct pollfd one = {set, POLLIN, 0};
    say(what, poll(&one, 1, ms));
}

static void near_to(int port) {
    struct sockaddr_in to = at("127.0.0.1", port);
    if (sendto(near, "near", 4, 0, SA(to)) != 4) perror("near");
}

static void from_near(void) { near_to(PORT); }

static void from_far(void) {
    struct sockaddr_in to = at(own, PORT);
    if (sendto(far, "far", 3, 0, SA(to)) != 3) perror("far");
}

static void read_all(int fd) {
    char bytes[9];
    int count = 0;
    while (recv(fd, bytes, 9, MSG_DONTWAIT) >= 0) count++;
    printf("read %d\n", count);
}

static void datagrams(void) {
    int fd = made(SOCK_DGRAM, "0.0.0.0", PORT), edges = set_of(fd, EPOLLIN | EPOLLET), level = set_of(fd, EPOLLIN);
    waits("nothing", edges, 0);
    from_near();
    waits("one came", edges, WATCHDOG_MS), waits("told", edges, 0);
    waits("by level", level, 0), waits("by level again", level, 0);
    from_near();
    waits("another", edges, WATCHDOG_MS), waits("told", edges, 0);
    change(edges, fd, EPOLLIN | EPOLLET);
    waits("changed", edges, 0), waits("told", edges, 0);
    from_far();
    waits("from afar", edges, WATCHDOG_MS), waits("told", edges, 0);
    read_all(fd);
    waits("read", edges, 0), waits("read, by level", level, 0);
    change(edges, fd, EPOLLIN | EPOLLET | EPOLLONESHOT);
    from_near();
    waits("one shot", edges, WATCHDOG_MS);
    read_all(fd);
    from_near();
    waits("another, by level", level, WATCHDOG_MS), waits("over", edges, 0);
    change(edges, fd, EPOLLIN | EPOLLET);
    waits("armed", edges, 0), waits("told", edges, 0);
    read_all(fd);
    /* The file goes on under another number. */
    int other = dup(fd);
    close(fd);
    from_near();
    waits("closed", edges, WATCHDOG_MS), waits("told", edges, 0);
    int second = made(SOCK_DGRAM, "0.0.0.0", PORT + 1), seconds = set_of(second, EPOLLIN | EPOLLET);
    printf("the number is used again: %d\n", second == fd);
    waits("nothing", seconds, 0);
    read_all(other);
    close(other);
    waits("all closed", edges, 0);
    near_to(PORT + 1);
    waits("the second one", seconds, WATCHDOG_MS), waits("told", seconds, 0);
    close(second), close(seconds);
    close(edges), close(level);
}

static void sets_in_poll(void) {
    int fd = made(SOCK_DGRAM, "0.0.0.0", PORT), edges = set_of(fd, EPOLLIN | EPOLLET), level = set_of(fd, EPOLLIN);
    polls("poll of edges", edges, 0), polls("poll of levels", level, 0);
    from_near();
    polls("poll of edges", edges, WATCHDOG_MS), polls("poll of levels", level, WATCHDOG_MS);
    waits("edges", edges, 0), polls("poll of edges", edges, 0);
    waits("levels", level, 0), polls("poll of levels", level, 0);
    from_near();
    fd_set set;
    FD_ZERO(&set);
    FD_SET(edges, &set);
    struct timeval span = {WATCHDOG_MS / 1000, 0};
    say("select of edges", select(edges + 1, &set, 0, 0, &span));
    read_all(fd);
    polls("read", edges, 0);
    close(fd), close(edges), close(level);
}

static volatile int waiter;
struct wait { void (*how)(const char *, int, int); int set; };

static void *sleeps(void *argument) {
    struct wait *wait = argument;
    waiter = gettid();
    wait->how("asleep", wait->set, WATCHDOG_MS);
    return 0;
}

/* Until the thread sleeps, or is over: the state behind the name (proc(5)). */
static void until_asleep(void) {
    char path[64], text[256];
    while (!waiter) sched_yield();
    for (;;) {
        snprintf(path, sizeof path, "/proc/self/task/%d/stat", waiter);
        FILE *file = fopen(path, "r");
        char *end = file && fgets(text, sizeof text, file) ? strrchr(text, ')') : 0;
        if (!file) return;
        fclose(file);
        if (end && end[2] == 'S') return;
        sched_yield();
    }
}

static void threads(void) {
    int fd = made(SOCK_DGRAM, "0.0.0.0", PORT), edges = set_of(fd, EPOLLIN | EPOLLET), level = set_of(fd, EPOLLIN);
    struct wait waiting[] = {{waits, edges}, {polls, edges}, {waits, level}, {polls, level}, {waits, edges}};
    from_near();
    waits("before", edges, WATCHDOG_MS);
    for (int n = 0; n < 5; n++) {
        pthread_t thread;
        if (n >= 2) read_all(fd);
        if (n == 4) waits("what poll left", edges, 0);
        waiter = 0;
        pthread_create(&thread, 0, sleeps, &waiting[n]);
        until_asleep();
        if (n == 1) from_far();
        else from_near();
        pthread_join(thread, 0);
    }
    close(fd), close(edges), close(level);
}

static void listeners(void) {
    int fd = made(SOCK_STREAM, "0.0.0.0", PORT), clients[3];
    struct sockaddr_in to = at("127.0.0.1", PORT);
    say("listen", listen(fd, 9));
    int edges = set_of(fd, EPOLLIN | EPOLLET), level = set_of(fd, EPOLLIN);
    for (int n = 0; n < 3; n++) {
        clients[n] = socket(AF_INET, SOCK_STREAM, 0);
        say("connect", connect(clients[n], SA(to)));
        polls("poll of edges", edges, WATCHDOG_MS), polls("poll of levels", level, WATCHDOG_MS);
        waits("a connection", edges, WATCHDOG_MS), waits("told", edges, 0), waits("by level", level, 0);
    }
    for (int n = 0; n < 3; n++) {
        int served = accept(fd, 0, 0);
        printf("accepted: %d\n", served >= 0);
        close(served), close(clients[n]);
    }
    waits("none", edges, 0), waits("none, by level", level, 0), polls("none", edges, 0);
    close(fd), close(edges), close(level);
}

/* It fails, and is an edge (inet_shutdown in net/ipv4/af_inet.c). */
static void shut_without_peer(void) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0), edges = set_of(fd, EPOLLOUT | EPOLLET);
    waits("writable", edges, 0), waits("told", edges, 0);
    say("shutdown", shutdown(fd, SHUT_RD));
    waits("shut", edges, 0), waits("told", edges, 0);
    close(fd), close(edges);
}

/* An end that changes nothing of what poll says is an edge, too (tcp_fin in net/ipv4/tcp_input.c). */
static void ends_of_a_connection(void) {
    int fd = made(SOCK_STREAM, own, PORT), client = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in to = at(own, PORT);
    char bytes[9];
    say("listen", listen(fd, 9));
    say("connect", connect(client, SA(to)));
    int served = accept(fd, 0, 0), edges = set_of(served, EPOLLOUT | EPOLLET);
    waits("writable", edges, WATCHDOG_MS), waits("told", edges, 0);
    say("shutdown", shutdown(served, SHUT_RDWR));
    say("the peer", recv(client, bytes, 9, 0));
    waits("shut", edges, WATCHDOG_MS), waits("told", edges, 0);
    say("a send of nothing", send(served, bytes, 0, MSG_NOSIGNAL));
    say("shutdown of the peer", shutdown(client, SHUT_WR));
    waits("the peer has ended", edges, WATCHDOG_MS), waits("told", edges, 0);
    close(served), close(client), close(fd), close(edges);
}

int main(int count, char **words) {
    own = words[1], peer = words[2];
    setvbuf(stdout, NULL, _IONBF, 0);
    far = made(SOCK_DGRAM, peer, 7101), near = made(SOCK_DGRAM, "127.0.0.1", 7102);
    datagrams();
    sets_in_poll();
    threads();
    listeners();
    shut_without_peer();
    /* "EPOLLOUT with EPOLLET is reported after each send": of a pair other things are edges. */
    if (count == 3) ends_of_a_connection();
    return 0;
}
