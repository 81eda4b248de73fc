// Calls that few programs make, and options that tell of a connection: what each gives, a line each. ADDRESS is where the serving end is.
// Compiled with _FORTIFY_SOURCE: lengths that the compiler does not know go through __recv_chk and its like.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct sockaddr_in at;
static int listener, served, client;
// Lengths that are not the compiler's to know.
static volatile size_t ten = 10, too_many = 1000;

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

static void gives(const char *text) {
    if (send(client, text, strlen(text), 0) < 0) perror("send");
    struct pollfd one = {.fd = served, .events = POLLIN};
    poll(&one, 1, 60000);
}

static void nothing(int signal) { (void)signal; }

static volatile int receiver;

static void *receive(void *what) {
    char byte = 0;
    receiver = gettid();
    long got = recv(*(int *)what, &byte, 1, 0);
    return (void *)(got * 256 + byte);
}

/* Until the thread that receives sleeps: the state behind the name (proc(5)). */
static void receiver_sleeps(void) {
    char path[64], text[256];
    for (;;) {
        snprintf(path, sizeof(path), "/proc/self/task/%d/stat", receiver);
        FILE *file = receiver ? fopen(path, "r") : 0;
        char *end = file && fgets(text, sizeof(text), file) ? strrchr(text, ')') : 0;
        if (file) fclose(file);
        if (end && end[2] == 'S') return;
        sched_yield();
    }
}

static void waiting(void) {
    struct epoll_event event = {EPOLLIN, {.u64 = 7}}, found = {0};
    struct timespec none = {0, 0}, short_time = {0, 2000000}, long_time = {60, 0}, wrong = {0, 1000000000};
    sigset_t open, alarms;
    sigemptyset(&open);
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = nothing}, 0);
    sigprocmask(SIG_BLOCK, &alarms, 0);
    connected();
    int epoll = epoll_create1(0);
    epoll_ctl(epoll, EPOLL_CTL_ADD, served, &event);
    printf("epoll_pwait2, none: %s\n", said(epoll_pwait2(epoll, &found, 1, &none, 0)));
    printf("epoll_pwait2, short: %s\n", said(epoll_pwait2(epoll, &found, 1, &short_time, 0)));
    printf("epoll_pwait2, no time: %s\n", said(epoll_pwait2(epoll, &found, 1, &wrong, 0)));
    raise(SIGALRM);
    printf("epoll_pwait2 lets a signal in: %s\n", said(epoll_pwait2(epoll, &found, 1, &long_time, &open)));
    fd_set set;
    FD_ZERO(&set);
    FD_SET(served, &set);
    printf("pselect, short: %s\n", said(pselect(served + 1, &set, 0, 0, &short_time, 0)));
    FD_SET(served, &set);
    raise(SIGALRM);
    printf("pselect lets a signal in: %s\n", said(pselect(served + 1, &set, 0, 0, &long_time, &open)));
    sigprocmask(SIG_UNBLOCK, &alarms, 0);
    gives("a");
    printf("epoll_pwait2: %s", said(epoll_pwait2(epoll, &found, 1, 0, 0)));
    printf(" %lx\n", (long)found.data.u64);
    FD_ZERO(&set);
    FD_SET(served, &set);
    printf("pselect: %s", said(pselect(served + 1, &set, 0, 0, &long_time, 0)));
    printf(" %d\n", FD_ISSET(served, &set));
    // Above FD_SETSIZE, in sets of the program's own.
    unsigned long many[2][4096 / 64] = {{0}};
    int high = dup2(served, 2000);
    many[0][2000 / 64] |= 1ul << 2000 % 64;
    many[1][2000 / 64] |= 1ul << 2000 % 64;
    printf("select of 2000: %d %s", high == 2000, said(select(2001, (void *)many[0], (void *)many[1], 0, 0)));
    printf(" %d %d\n", many[0][2000 / 64] != 0, many[1][2000 / 64] != 0);
    close(high);
    printf("select of what is closed: %s\n", said(select(2001, (void *)many[0], 0, 0, 0)));
    // Exclusively.
    int exclusive = epoll_create1(0);
    event.events = EPOLLIN | EPOLLEXCLUSIVE;
    printf("EPOLLEXCLUSIVE: %s", said(epoll_ctl(exclusive, EPOLL_CTL_ADD, served, &event)));
    printf(" %s", said(epoll_ctl(exclusive, EPOLL_CTL_MOD, served, &event)));
    event.events = EPOLLIN;
    printf(" %s", said(epoll_ctl(exclusive, EPOLL_CTL_MOD, served, &event)));
    printf(" %s\n", said(epoll_wait(exclusive, &found, 1, 60000)));
    event.events = EPOLLIN | EPOLLEXCLUSIVE | EPOLLONESHOT;
    printf("once: %s\n", said(epoll_ctl(exclusive, EPOLL_CTL_ADD, client, &event)));
    close(exclusive);
    close(epoll);
    over();
}

static void descriptors(void) {
    char bytes[10];
    connected();
    struct stat stat;
    printf("fstat: %s", said(fstat(served, &stat)));
    printf(" %d, of a listener: %s", S_ISSOCK(stat.st_mode), said(fstat(listener, &stat)));
    printf(" %d\n", S_ISSOCK(stat.st_mode));
    printf("dup3: %s", said(dup3(served, 300, O_CLOEXEC)));
    printf(" %d, onto itself: %s", fcntl(300, F_GETFD), said(dup3(300, 300, 0)));
    printf(", wrong flags: %s\n", said(dup3(served, 301, O_APPEND)));
    dup2(served, 301);
    dup2(served, 302);
    gives("abc");
    printf("read of a twin: %s\n", said(read(301, bytes, 1)));
    printf("close_range of none: %s\n", said(close_range(302, 301, 0)));
    printf("close_range for exec: %s", said(close_range(301, 301, CLOSE_RANGE_CLOEXEC)));
    printf(" %d %d\n", fcntl(301, F_GETFD), fcntl(302, F_GETFD));
    printf("close_range: %s", said(close_range(300, 301, 0)));
    printf(" %s", said(read(301, bytes, 1)));
    printf(" %s\n", said(read(302, bytes, 1)));
    closefrom(302);
    printf("closefrom: %s", said(read(302, bytes, 1)));
    printf(" %s\n", said(read(served, bytes, 1)));
    pid_t child;
    int status;
    char *words[] = {"sh", "-c", "exit 3", 0}, *environment[] = {0};
    printf("posix_spawn: %d", posix_spawn(&child, "/bin/sh", 0, 0, words, environment));
    waitpid(child, &status, 0);
    gives("d");
    printf(" %d, %s\n", WEXITSTATUS(status), said(read(served, bytes, 10)));
    over();

    // Its number is another one's while the call waits for bytes of what it was.
    connected();
    pthread_t thread;
    int number = served;
    pthread_create(&thread, 0, receive, &number);
    receiver_sleeps();
    close(served);
    if (send(client, "z", 1, 0) < 0) perror("send");
    void *got;
    pthread_join(thread, &got);
    printf("closed while recv waits: %lx\n", (long)got);
    close(client);
}

static void checked(void) {
    char bytes[10];
    struct sockaddr_in from;
    socklen_t len = sizeof from;
    connected();
    gives("0123456789abcdefghijklmnopqrst");
    printf("recv: %s", said(recv(served, bytes, ten, 0)));
    printf(" %.10s\n", bytes);
    printf("recvfrom: %s", said(recvfrom(served, bytes, ten, 0, (void *)&from, &len)));
    printf(" %.10s %d\n", bytes, len);
    printf("read: %s", said(read(served, bytes, ten)));
    printf(" %.10s\n", bytes);
    struct pollfd all[2] = {{.fd = served, .events = POLLIN | POLLOUT}, {.fd = client, .events = POLLOUT}};
    volatile nfds_t two = 2;
    printf("poll: %s", said(poll(all, two, 0)));
    printf(" %x %x\n", all[0].revents, all[1].revents);
    printf("ppoll: %s\n", said(ppoll(all, two, &(struct timespec){0, 0}, 0)));
    for (int how = 0; how < 3; how++) {
        pid_t child = fork();
        if (!child) {
            fclose(stderr);
            int null = open("/dev/null", O_WRONLY);
            dup2(null, 2);
            if (how == 0) recv(served, bytes, too_many, MSG_DONTWAIT);
            if (how == 1) recvfrom(served, bytes, too_many, MSG_DONTWAIT, 0, 0);
            if (how == 2 && read(served, bytes, too_many)) _exit(1);
            _exit(0);
        }
        int status;
        waitpid(child, &status, 0);
        printf("beyond the buffer, %d: signal %d\n", how, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    }
    over();
}

static void options(void) {
    static char bytes[1 << 16];
    connected();
    struct timeval span = {0, 100000}, read_back;
    socklen_t len = sizeof read_back;
    setsockopt(served, SOL_SOCKET, SO_SNDTIMEO, &span, sizeof span);
    getsockopt(served, SOL_SOCKET, SO_SNDTIMEO, &read_back, &len);
    printf("SO_SNDTIMEO %ld.%06ld\n", (long)read_back.tv_sec, (long)read_back.tv_usec);
    long sent;
    do sent = send(served, bytes, sizeof bytes, 0);
    while (sent > 0);
    printf("send with time-out: %s\n", said(sent));
    over();

    connected();
    int queued = -1;
    if (send(served, bytes, 1000, 0) != 1000) perror("send");
    do printf("%s", ioctl(served, SIOCOUTQ, &queued) ? "SIOCOUTQ fails\n" : "");
    while (queued > 0);
    printf("SIOCOUTQ: %d", queued);
    do printf("%s", ioctl(served, SIOCOUTQNSD, &queued) ? "SIOCOUTQNSD fails\n" : "");
    while (queued > 0);
    printf(" %d\n", queued);
    gives("12345");
    printf("FIONREAD: %s", said(ioctl(served, FIONREAD, &queued)));
    printf(" %d\n", queued);
    printf("MSG_TRUNC: %s", said(recv(served, bytes, 3, MSG_TRUNC)));
    printf(" %s", said(recv(served, bytes, 10, 0)));
    printf(" %.2s\n", bytes);
    printf("MSG_TRUNC of nothing: %s\n", said(recv(served, bytes, 3, MSG_TRUNC | MSG_DONTWAIT)));
    unsigned memory[SK_MEMINFO_VARS];
    len = sizeof memory;
    printf("SO_MEMINFO: %s", said(getsockopt(served, SOL_SOCKET, SO_MEMINFO, memory, &len)));
    printf(" %d\n", len);
    struct tcp_info info = {0};
    len = sizeof info;
    printf("TCP_INFO: %s", said(getsockopt(served, IPPROTO_TCP, TCP_INFO, &info, &len)));
    printf(" %d, state %d, %d unacknowledged, %lld received, mss %d\n", len > 100, info.tcpi_state, info.tcpi_unacked,
           (long long)info.tcpi_bytes_received, info.tcpi_snd_mss > 500);
    // A SYN or its answer and its acknowledgement; two sends, and what acknowledges them.
    printf("segments %d %d, with data %d %d\n", info.tcpi_segs_in >= 3 && info.tcpi_segs_in < 9, info.tcpi_segs_out >= 2 && info.tcpi_segs_out < 9,
           info.tcpi_data_segs_in, info.tcpi_data_segs_out);
    printf("rtt %d, rto %d, cwnd %d\n", info.tcpi_rtt > 0 && info.tcpi_rtt < 1000000, info.tcpi_rto >= info.tcpi_rtt, info.tcpi_snd_cwnd >= 2);
    unsigned control[5];
    len = sizeof control;
    // What of depends on the algorithm.
    printf("TCP_CC_INFO: %s\n", said(getsockopt(served, IPPROTO_TCP, TCP_CC_INFO, control, &len)));
    len = sizeof info;
    printf("TCP_INFO of a listener: %s", said(getsockopt(listener, IPPROTO_TCP, TCP_INFO, &info, &len)));
    printf(" state %d\n", info.tcpi_state);
    int ends[2];
    if (pipe(ends) || write(ends[1], "spliced", 7) != 7) perror("pipe");
    printf("splice out: %s\n", said(splice(ends[0], 0, served, 0, 7, 0)));
    gives("in");
    printf("splice in: %s\n", said(splice(served, 0, ends[1], 0, 2, 0)));
    over();
}

// Lengths and counts beyond what there is.
static void beyond(void) {
    char *volatile bytes = malloc(64);
    static struct iovec parts[1025];
    volatile size_t huge = 1UL << 38;
    for (int i = 0; i < 1025; i++) parts[i] = (struct iovec){bytes, 0};
    parts[0].iov_len = 1;
    connected();
    gives("abc");
    printf("MSG_PEEK of 256 GiB: %s\n", said(recv(served, bytes, huge, MSG_PEEK)));
    printf("MSG_PEEK of SIZE_MAX: %s\n", said(recv(served, bytes, -1, MSG_PEEK | MSG_DONTWAIT)));
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 1025};
    printf("1025 vectors: %s", said(sendmsg(served, &message, 0)));
    printf(" %s", said(recvmsg(served, &message, MSG_DONTWAIT)));
    printf(" %s", said(writev(served, parts, 1025)));
    message.msg_iovlen = 1024;
    printf(", 1024: %s", said(sendmsg(served, &message, 0)));
    printf(" %s\n", said(recvmsg(served, &message, 0)));
    socklen_t less = -1;
    printf("getsockname into -1: %s\n", said(getsockname(served, (void *)bytes, &less)));
    printf("shutdown(5): %s\n", said(shutdown(served, 5)));
    int set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN | EPOLLEXCLUSIVE | EPOLLRDHUP};
    printf("EPOLLEXCLUSIVE and EPOLLRDHUP: %s\n", said(epoll_ctl(set, EPOLL_CTL_ADD, served, &event)));
    close(set);
    int segment, then;
    socklen_t len = sizeof segment;
    getsockopt(served, IPPROTO_TCP, TCP_MAXSEG, &segment, &len);
    printf("TCP_MAXSEG: %s", said(setsockopt(served, IPPROTO_TCP, TCP_MAXSEG, &(int){500}, 4)));
    getsockopt(served, IPPROTO_TCP, TCP_MAXSEG, &then, &len);
    printf(", changed: %d\n", segment != then);
    struct ifreq device = {.ifr_name = "lo"};
    printf("SIOCGIFADDR: %s", said(ioctl(served, SIOCGIFADDR, &device)));
    printf(" %x\n", ntohl(((struct sockaddr_in *)&device.ifr_addr)->sin_addr.s_addr));
    shutdown(client, SHUT_WR);
    printf("MSG_PEEK | MSG_WAITALL before the end: %s\n", said(recv(served, bytes, ten, MSG_PEEK | MSG_WAITALL)));
    over();
    struct sockaddr_in6 mapped = {.sin6_family = AF_INET6, .sin6_port = at.sin_port};
    mapped.sin6_addr.s6_addr[10] = mapped.sin6_addr.s6_addr[11] = 0xff;
    memcpy(&mapped.sin6_addr.s6_addr[12], &at.sin_addr, 4);
    int other = socket(AF_INET6, SOCK_STREAM, 0);
    printf("bind of the same address, mapped: %s\n", said(bind(other, (void *)&mapped, sizeof mapped)));
    close(other);
    free(bytes);
}

static void *gives_rest(void *what) {
    (void)what;
    receiver_sleeps();
    send(client, "defghi", 6, 0);
    return 0;
}

static void low_water(void) {
    char bytes[16];
    pthread_t thread;
    connected();
    setsockopt(served, SOL_SOCKET, SO_RCVLOWAT, &(int){6}, 4);
    send(client, "abc", 3, 0);
    receiver = gettid();
    pthread_create(&thread, 0, gives_rest, 0);
    printf("SO_RCVLOWAT: %s\n", said(recv(served, bytes, sizeof bytes, 0)));
    pthread_join(thread, 0);
    over();
}

int main(int argc, char **argv) {
    setvbuf(stdout, 0, _IOLBF, 0);
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){4096, 4096});
    at.sin_family = AF_INET;
    at.sin_port = htons(7);
    inet_pton(AF_INET, argv[1], &at.sin_addr);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, 4);
    if (bind(listener, (void *)&at, sizeof at) || listen(listener, 8)) return perror("listen"), 1;
    waiting();
    descriptors();
    checked();
    options();
    beyond();
    if (argc > 2) low_water();
    return 0;
}
