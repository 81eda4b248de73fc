/* Datagram sockets at ADDRESS, with a peer of the kernel's at PEER: what waits, many at once, control messages, lengths. A line each; the same
   lines on the kernel's stack and on another one. With "pairs" as a third word an error is not waited for alone: of a pair of unix(7) it is POLLIN. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

static const char *own, *peer;
static int pairs;
static int far; /* the peer's socket, at PEER:7101 */

static struct sockaddr_in at(const char *host, int port) {
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
    inet_pton(AF_INET, host, &to.sin_addr);
    return to;
}

#define SA(to) (struct sockaddr *)&(to), sizeof(to)

static int made(const char *host, int port) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (!host) return fd;
    struct sockaddr_in to = at(host, port);
    if (bind(fd, SA(to))) perror("bind"), exit(1);
    return fd;
}

static void say(const char *what, long result) {
    if (result < 0) printf("%s: %s\n", what, strerrorname_np(errno));
    else printf("%s: %ld\n", what, result);
}

static void from(const char *what, struct sockaddr_in *name) {
    char text[64] = "";
    inet_ntop(AF_INET, &name->sin_addr, text, sizeof text);
    int is_own = !strcmp(text, own), is_peer = !strcmp(text, peer);
    printf("%s: %s %d\n", what, is_own || is_peer ? "host" : text, ntohs(name->sin_port) < 32768 ? ntohs(name->sin_port) : 1);
}

/* Until something has come to be read, whichever stack it comes from. */
static void await(int fd) {
    struct pollfd one = { fd, POLLIN, 0 };
    if (poll(&one, 1, 20000) != 1) printf("nothing came\n");
}

static void times_out(void) {
    int fd = made(own, 7100);
    struct timeval span = { 0, 100000 };
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &span, sizeof span);
    char bytes[9];
    say("recv with a time-out", recv(fd, bytes, 9, 0));
    struct timeval told;
    socklen_t len = sizeof told;
    getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &told, &len);
    printf("it was %ld.%06ld\n", told.tv_sec, told.tv_usec);
    close(fd);
}

static void many(void) {
    int fd = made(own, 7100);
    struct sockaddr_in here = at(own, 7100), there = at(peer, 7101);
    char bytes[4][100];
    struct iovec parts[4];
    struct mmsghdr messages[4] = { 0 };
    for (int n = 0; n < 4; n++) {
        snprintf(bytes[n], 100, "number %d", n);
        parts[n] = (struct iovec){ bytes[n], 9 + n };
        messages[n].msg_hdr = (struct msghdr){ .msg_iov = &parts[n], .msg_iovlen = 1, .msg_name = &there, .msg_namelen = sizeof there };
    }
    say("sendmmsg", sendmmsg(fd, messages, 4, 0));
    for (int n = 0; n < 4; n++) {
        await(far);
        say("the peer", recv(far, bytes[0], 100, 0));
        sendto(far, bytes[0], 9 + n, 0, SA(here));
    }
    for (int n = 0; n < 4; n++) parts[n].iov_len = 11, messages[n].msg_hdr.msg_name = NULL;
    struct timespec span = { 20, 0 };
    say("recvmmsg of three", recvmmsg(fd, messages, 3, 0, &span));
    for (int n = 0; n < 3; n++) printf(" %u %x\n", messages[n].msg_len, messages[n].msg_hdr.msg_flags);
    printf("some time is left: %d\n", span.tv_sec < 20 && span.tv_sec > 0);
    say("recvmmsg for one", recvmmsg(fd, messages, 4, MSG_WAITFORONE, NULL));
    printf(" %u %x\n", messages[0].msg_len, messages[0].msg_hdr.msg_flags);
    say("recvmmsg of nothing", recvmmsg(fd, messages, 4, MSG_DONTWAIT, NULL));
    span = (struct timespec){ 0, -1 };
    say("recvmmsg with no time", recvmmsg(fd, messages, 4, MSG_DONTWAIT, &span));
    close(fd);
}

static void told(int family, int level, int option, int kind) {
    int fd = socket(family, SOCK_DGRAM, 0), one = 1;
    struct sockaddr_in6 any6 = { .sin6_family = AF_INET6, .sin6_port = htons(7100) };
    struct sockaddr_in any4 = at("0.0.0.0", 7100), here = at(own, 7100);
    setsockopt(fd, level, option, &one, sizeof one);
    say("bind everywhere", family == AF_INET ? bind(fd, SA(any4)) : bind(fd, SA(any6)));
    sendto(far, "question", 8, 0, SA(here));
    char bytes[100], control[200], name[sizeof any6] = "";
    struct iovec part = { bytes, 100 };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_name = name, .msg_namelen = 8, .msg_control = control, .msg_controllen = 200 };
    await(fd);
    say("recvmsg", recvmsg(fd, &message, 0));
    printf(" name of %d, control of %zu, flags %x\n", message.msg_namelen, message.msg_controllen, message.msg_flags);
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_type == kind && kind == IP_PKTINFO) {
        struct in_pktinfo *info = (void *)CMSG_DATA(header);
        struct in_addr asked;
        inet_pton(AF_INET, own, &asked);
        printf(" to the address: %d %d, device %d\n", info->ipi_addr.s_addr == asked.s_addr, info->ipi_spec_dst.s_addr == asked.s_addr, info->ipi_ifindex > 0);
    } else if (header && header->cmsg_type == kind) {
        struct in6_pktinfo *info = (void *)CMSG_DATA(header);
        printf(" mapped: %d, device %d\n", IN6_IS_ADDR_V4MAPPED(&info->ipi6_addr), info->ipi6_ifindex > 0);
    } else printf(" no such control message\n");
    /* What was told is good for the answer. */
    struct sockaddr_in there = at(peer, 7101);
    struct sockaddr_in6 there6 = { .sin6_family = AF_INET6, .sin6_port = htons(7101) };
    there6.sin6_addr.s6_addr[10] = there6.sin6_addr.s6_addr[11] = 0xff;
    memcpy(&there6.sin6_addr.s6_addr[12], &there.sin_addr, 4);
    message.msg_name = family == AF_INET ? (void *)&there : (void *)&there6;
    message.msg_namelen = family == AF_INET ? sizeof there : sizeof there6;
    /* Not by the device: the stack's is another one than the kernel's. */
    if (header && kind == IP_PKTINFO) ((struct in_pktinfo *)CMSG_DATA(header))->ipi_ifindex = 0;
    else if (header) ((struct in6_pktinfo *)CMSG_DATA(header))->ipi6_ifindex = 0;
    say("sendmsg", sendmsg(fd, &message, 0));
    struct sockaddr_in name4;
    socklen_t len = sizeof name4;
    await(far);
    say("the peer", recvfrom(far, bytes, 100, 0, (void *)&name4, &len));
    from(" from", &name4);
    sendto(far, "question", 8, 0, SA(here));
    await(fd);
    message.msg_name = NULL, message.msg_controllen = 20, part.iov_len = 3;
    say("recvmsg with little room", recvmsg(fd, &message, 0));
    printf(" control of %zu, flags %x\n", message.msg_controllen, message.msg_flags);
    message.msg_controllen = 200, ((struct cmsghdr *)control)->cmsg_len = 7, ((struct cmsghdr *)control)->cmsg_level = SOL_IP;
    message.msg_name = family == AF_INET ? (void *)&there : (void *)&there6;
    say("sendmsg with a bad control message", sendmsg(fd, &message, 0));
    close(fd);
}

static int shared;
static _Atomic int reader;

/* The thread has begun, and sleeps. */
static void await_reader(void) {
    char path[64], stat[256], state = 0;
    while (!reader) sched_yield();
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", reader);
    while (state != 'S') {
        FILE *file = fopen(path, "r");
        if (file && fgets(stat, sizeof stat, file)) sscanf(strrchr(stat, ')'), ") %c", &state);
        if (file) fclose(file);
    }
    reader = 0;
}

static void *reads(void *from_whom) {
    char bytes[100];
    struct sockaddr_in name = { 0 };
    socklen_t len = sizeof name;
    reader = gettid();
    long count = recvfrom(shared, bytes, 100, 0, (void *)&name, &len);
    *(long *)from_whom = count < 0 ? -errno : count;
    return NULL;
}

static void waits_in_threads(void) {
    pthread_t thread;
    long got;
    /* Until the first datagram nobody knows whose the socket is. */
    shared = made(NULL, 0);
    pthread_create(&thread, NULL, reads, &got);
    await_reader();
    struct sockaddr_in there = at(peer, 7101), name;
    say("sendto beside a reader", sendto(shared, "x", 1, 0, SA(there)));
    char bytes[100];
    socklen_t len = sizeof name;
    await(far);
    recvfrom(far, bytes, 100, 0, (void *)&name, &len);
    sendto(far, "answer", 6, 0, SA(name));
    pthread_join(thread, NULL);
    printf("the reader: %ld\n", got);
    close(shared);
    shared = made(own, 7100);
    pthread_create(&thread, NULL, reads, &got);
    await_reader();
    say("shutdown of what is not connected", shutdown(shared, SHUT_RD));
    pthread_join(thread, NULL);
    printf("the reader: %ld\n", got);
    say("recv at once", recv(shared, bytes, 9, MSG_DONTWAIT));
    say("recv", recv(shared, bytes, 9, 0));
    struct pollfd one = { shared, POLLIN | POLLOUT | POLLRDHUP, 0 };
    poll(&one, 1, 0);
    printf("events %x\n", one.revents);
    close(shared);
}

static void refused(void) {
    int fd = made(own, 7100);
    struct sockaddr_in nobody = at(peer, 7999), there = at(peer, 7101), zero = at(peer, 0);
    say("connect", connect(fd, SA(nobody)));
    say("send", send(fd, "x", 1, 0));
    struct pollfd one = { fd, POLLIN, 0 };
    say("poll", poll(&one, 1, 20000));
    printf("events %x\n", one.revents);
    int error = 0;
    socklen_t len = sizeof error;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
    printf("SO_ERROR %s\n", strerrorname_np(error));
    say("send", send(fd, "x", 1, 0));
    one.events = pairs ? POLLIN : 0;
    poll(&one, 1, 20000);
    char bytes[9];
    say("recv", recv(fd, bytes, 9, 0));
    say("recv at once", recv(fd, bytes, 9, MSG_DONTWAIT));
    say("of errors", recv(fd, bytes, 9, MSG_ERRQUEUE));
    say("connect to port 0", connect(fd, SA(zero)));
    say("sendto beside the peer", sendto(fd, "x", 1, 0, SA(there)));
    await(far);
    say("the peer", recv(far, bytes, 9, 0));
    /* Another's is not heard: what its peer sends behind that is the first. */
    struct sockaddr_in here = at(own, 7100), name;
    int its_peer = made(peer, 7999);
    say("connect", connect(fd, SA(nobody)));
    sendto(far, "x", 1, 0, SA(here));
    sendto(its_peer, "ab", 2, 0, SA(here));
    await(fd);
    say("recv of its peer's", recv(fd, bytes, 9, MSG_DONTWAIT));
    close(its_peer);
    struct sockaddr unspec = { .sa_family = AF_UNSPEC };
    say("disconnect", connect(fd, &unspec, sizeof unspec));
    len = sizeof name;
    getsockname(fd, (void *)&name, &len);
    from("bound to", &name);
    sendto(far, "xy", 2, 0, SA(here));
    await(fd);
    say("recv", recv(fd, bytes, 9, MSG_DONTWAIT));
    close(fd);
}

static void lengths(void) {
    int fd = made(own, 7100), value = IP_PMTUDISC_DO;
    struct sockaddr_in here = at(own, 7100), there = at(peer, 7101);
    static char bytes[70000];
    socklen_t len = sizeof value;
    say("IP_MTU", getsockopt(fd, IPPROTO_IP, IP_MTU, &value, &len));
    connect(fd, SA(there));
    say("IP_MTU", getsockopt(fd, IPPROTO_IP, IP_MTU, &value, &len));
    printf(" %d\n", value);
    value = IP_PMTUDISC_DO;
    say("IP_MTU_DISCOVER", setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &value, sizeof value));
    for (int size = 1472; size < 1474; size++) say("send", send(fd, bytes, size, 0));
    struct sockaddr_in other = at(peer, 7103);
    for (value = IP_PMTUDISC_DO; value <= IP_PMTUDISC_PROBE; value++) {
        setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &value, sizeof value);
        for (int size = 1472; size < 1474; size++) say("send to another", sendto(fd, bytes, size, 0, SA(other)));
    }
    value = IP_PMTUDISC_DONT;
    say("IP_MTU_DISCOVER", setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &value, sizeof value));
    int sizes[] = { 0, 1473, 60000, 65507, 65508 };
    for (int n = 0; n < 5; n++) say("send", send(fd, bytes, sizes[n], 0));
    for (int n = 0; n < 5; n++) await(far), say("the peer", recv(far, bytes, sizeof bytes, 0));
    int big = 1 << 20;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &big, sizeof big);
    for (int n = 0; n < 4; n++) {
        sendto(far, bytes, sizes[n], 0, SA(here));
        await(fd);
        int waiting = -1;
        ioctl(fd, FIONREAD, &waiting);
        printf("FIONREAD %d\n", waiting);
        struct iovec parts[2] = { { bytes, 1000 }, { bytes + 1000, sizeof bytes - 1000 } };
        if (n % 2) say("readv", readv(fd, parts, 2));
        else say("recv", recv(fd, bytes, 10, MSG_TRUNC));
    }
    struct iovec none[2] = { { bytes, 0 }, { bytes, 0 } };
    say("read of nothing", read(fd, bytes, 0));
    say("readv of nothing", readv(fd, none, 2));
    say("writev of nothing", writev(fd, none, 2));
    say("write of nothing", write(fd, bytes, 0));
    await(far);
    say("the peer", recv(far, bytes, 9, 0));
    say("and no more", recv(far, bytes, 9, MSG_DONTWAIT));
    say("MSG_OOB", send(fd, bytes, 1, MSG_OOB));
    struct sockaddr_in all = at("10.0.0.255", 9), nowhere = at(peer, 0);
    say("a broadcast", sendto(fd, bytes, 1, 0, SA(all)));
    say("to port 0", sendto(fd, bytes, 1, 0, SA(nowhere)));
    struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(9) };
    say("to another family", sendto(fd, bytes, 1, 0, SA(six)));
    say("to a short address", sendto(fd, bytes, 1, 0, (void *)&there, 7));
    close(fd);
}

static void shared_ports(void) {
    int option, options[] = { 0, SO_REUSEADDR, SO_REUSEPORT };
    struct sockaddr_in here = at(own, 7100), any = at("0.0.0.0", 7100), there = at(peer, 7101);
    for (int n = 0; n < 3; n++) {
        int a = socket(AF_INET, SOCK_DGRAM, 0), b = socket(AF_INET, SOCK_DGRAM, 0), c = socket(AF_INET, SOCK_DGRAM, 0), one = 1;
        option = options[n];
        if (option) setsockopt(a, SOL_SOCKET, option, &one, sizeof one), setsockopt(b, SOL_SOCKET, option, &one, sizeof one);
        say("first", bind(a, SA(here)));
        say("second", bind(b, SA(here)));
        say("everywhere without", bind(c, SA(any)));
        /* The connected one hears its peer. */
        if (option) {
            connect(a, SA(there));
            sendto(far, "to the connected", 16, 0, SA(here));
            await(a);
            char bytes[99];
            say("connected", recv(a, bytes, 99, MSG_DONTWAIT));
            say("the other", recv(b, bytes, 99, MSG_DONTWAIT));
        }
        close(a), close(b), close(c);
    }
}

/* A send that has nowhere to go gives the socket a port, no edge of EPOLLOUT; connect(AF_UNSPEC) takes the port back. */
static void without_peer(void) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0), epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLOUT | EPOLLET};
    struct sockaddr nobody = {.sa_family = AF_UNSPEC};
    struct sockaddr_in name, here = at(own, 7100);
    socklen_t len = sizeof name;
    if (!pairs) {
        epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
        say("first edge", epoll_wait(epoll, &event, 1, 0));
    }
    say("send to nobody", send(fd, "x", 1, 0));
    if (!pairs) say("no edge", epoll_wait(epoll, &event, 1, 0));
    getsockname(fd, (void *)&name, &len);
    printf("it has a port: %d\n", name.sin_port != 0);
    say("disconnect", connect(fd, &nobody, sizeof nobody));
    getsockname(fd, (void *)&name, &len);
    printf("it has a port: %d\n", name.sin_port != 0);
    say("bind", bind(fd, SA(here)));
    close(fd), close(epoll);
}

/* Each option is of its own family, also of one socket. */
static void lengths_of_families(void) {
    static char bytes[3000];
    char mapped[64];
    int fd = socket(AF_INET6, SOCK_DGRAM, 0);
    struct sockaddr_in6 there = { .sin6_family = AF_INET6, .sin6_port = htons(7103) };
    snprintf(mapped, sizeof mapped, "::ffff:%s", peer);
    inet_pton(AF_INET6, mapped, &there.sin6_addr);
    for (int v4 = IP_PMTUDISC_WANT; v4 <= IP_PMTUDISC_PROBE; v4++) {
        for (int v6 = IP_PMTUDISC_WANT; v6 <= IP_PMTUDISC_PROBE; v6++) {
            int told[2] = { -1, -1 };
            socklen_t len = sizeof told[0];
            setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &v4, sizeof v4);
            setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &v6, sizeof v6);
            say("to IPv4", sendto(fd, bytes, sizeof bytes, 0, SA(there)));
            getsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &told[0], &len);
            getsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &told[1], &len);
            printf("told %d %d\n", told[0], told[1]);
        }
    }
    close(fd);
}

static void many_vectors(void) {
    static char bytes[1025];
    static struct iovec parts[1025];
    int fd = made(own, 0), other = made(own, 0);
    struct sockaddr_in there;
    socklen_t len = sizeof there;
    getsockname(other, (void *)&there, &len);
    for (int i = 0; i < 1025; i++) parts[i] = (struct iovec){ &bytes[i], 1 };
    for (int i = 0; i < 1025; i++) bytes[i] = (char)(i % 251);
    for (size_t count = 1021; count <= 1025; count++) {
        struct msghdr message = { .msg_name = &there, .msg_namelen = sizeof there, .msg_iov = parts, .msg_iovlen = count };
        ssize_t sent = sendmsg(fd, &message, 0);
        say("vectors sent", sent);
        if (sent < 0) break;
        memset(bytes, 0, sizeof bytes);
        message.msg_name = NULL;
        say("vectors received", recvmsg(other, &message, 0));
        for (size_t i = 0; i < count; i++) if (bytes[i] != (char)(i % 251)) printf("byte %zu is another one\n", i);
    }
    struct pollfd one = { fd, POLLIN | POLLOUT | POLLWRNORM | POLLWRBAND, 0 };
    poll(&one, 1, 0);
    printf("may be written: %x\n", one.revents);
    struct sockaddr_in6 of_ipv6 = { .sin6_family = AF_INET6, .sin6_port = there.sin_port };
    say("to an address of IPv6", sendto(fd, bytes, 1, 0, (void *)&of_ipv6, 16));
    close(fd);
    close(other);
}

static void asked(const char *what, int fd, int level, int kind, const void *value, size_t length) {
    union { struct cmsghdr first; char bytes[128]; } control = { 0 };
    struct iovec part = { "x", 1 };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_SPACE(length) };
    struct cmsghdr *first = CMSG_FIRSTHDR(&message);
    first->cmsg_level = level;
    first->cmsg_type = kind;
    first->cmsg_len = CMSG_LEN(length);
    memcpy(CMSG_DATA(first), value, length);
    say(what, sendmsg(fd, &message, 0));
}

/* What the peer sees of them is datagrams' own test. */
static void asked_for(void) {
    int v4 = socket(AF_INET, SOCK_DGRAM, 0), mapped = socket(AF_INET6, SOCK_DGRAM, 0);
    struct sockaddr_in there = at(peer, 7104);
    struct sockaddr_in6 there6 = { .sin6_family = AF_INET6, .sin6_port = htons(7104) };
    char text[64];
    snprintf(text, sizeof text, "::ffff:%s", peer);
    inet_pton(AF_INET6, text, &there6.sin6_addr);
    int hears = made(peer, 7104);
    connect(v4, SA(there));
    connect(mapped, SA(there6));
    int fds[] = { v4, mapped };
    for (int i = 0; i < 2; i++) {
        int fd = fds[i];
        int numbers[] = { -2, -1, 0, 1, 255, 256 };
        for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++) {
            asked("IP_TOS", fd, IPPROTO_IP, IP_TOS, &numbers[n], 4);
            asked("IP_TTL", fd, IPPROTO_IP, IP_TTL, &numbers[n], 4);
            asked("IPV6_TCLASS", fd, IPPROTO_IPV6, IPV6_TCLASS, &numbers[n], 4);
            asked("IPV6_HOPLIMIT", fd, IPPROTO_IPV6, IPV6_HOPLIMIT, &numbers[n], 4);
        }
        long eight = 64;
        asked("IP_TOS of a byte", fd, IPPROTO_IP, IP_TOS, &eight, 1);
        asked("IP_TOS of two", fd, IPPROTO_IP, IP_TOS, &eight, 2);
        asked("IP_TTL of eight", fd, IPPROTO_IP, IP_TTL, &eight, 8);
        asked("TCP", fd, IPPROTO_TCP, 1, &eight, 4);
        asked("unknown", fd, IPPROTO_IP, 99, &eight, 4);
        struct in_pktinfo foreign = { 0 };
        inet_pton(AF_INET, "10.0.0.77", &foreign.ipi_spec_dst);
        asked("IP_PKTINFO", fd, IPPROTO_IP, IP_PKTINFO, &foreign, sizeof foreign);
        asked("IP_PKTINFO cut", fd, IPPROTO_IP, IP_PKTINFO, &foreign, 8);
    }
    close(v4);
    close(mapped);
    close(hears);
}

int main(int count, char **words) {
    own = words[1], peer = words[2], pairs = count > 3;
    setvbuf(stdout, NULL, _IONBF, 0);
    far = made(peer, 7101);
    times_out();
    many();
    told(AF_INET, IPPROTO_IP, IP_PKTINFO, IP_PKTINFO);
    told(AF_INET6, IPPROTO_IPV6, IPV6_RECVPKTINFO, IPV6_PKTINFO);
    waits_in_threads();
    refused();
    lengths();
    shared_ports();
    without_peer();
    lengths_of_families();
    many_vectors();
    asked_for();
    return count - 3 - pairs;
}
