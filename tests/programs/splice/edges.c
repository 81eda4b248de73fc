/* edges CASE FAMILY WAY [PORT]: a reader that waits for edges (EPOLLET) and takes a receive of less than it asked for as the
 * end of what there is (epoll(7)), while its connection returns to TCP with redirected bytes unread. FAMILY: 4 or 6; WAY:
 * `forth` is from the client to the server, `back` the other way.
 *   pressure: more messages than may be redirected. oob: the reader receives with MSG_OOB.
 *   left: after a line on stdout it waits until messages take TCP.
 *   behind: as pressure, while a receive of another connection stops in a page fault (userfaultfd) with its socket locked, until
 *     there is a line on stdin; says when it waits for the edge. */
#define _GNU_SOURCE
#include "both_ends.h"
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <linux/userfaultfd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { FEW = 100, MANY = 1500, ROOM = 65536, MS_EACH = 5 };

static char room[ROOM];
static int sender, reader;
static long got;

static void connected(int family, uint16_t port)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT, .sin6_port = htons(port)};
	struct sockaddr *name = family == AF_INET ? (void *)&v4 : (void *)&v6;
	socklen_t length = family == AF_INET ? sizeof(v4) : sizeof(v6);
	int listener = socket(family, SOCK_STREAM, 0), one = 1;

	must(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0, "reuse");
	must(bind(listener, name, length) == 0 && listen(listener, 1) == 0, "listen");
	must(getsockname(listener, name, &length) == 0, "getsockname");
	sender = socket(family, SOCK_STREAM, 0);
	must(connect(sender, name, length) == 0, "connect");
	reader = accept(listener, NULL, NULL);
	must(reader >= 0, "accept");
	must(setsockopt(sender, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) == 0, "nodelay");
	must(setsockopt(reader, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) == 0, "nodelay");
	may_not_wait(sender);
	may_not_wait(reader);
}

static void exchange(void)
{
	struct timespec now, begun;

	clock_gettime(CLOCK_MONOTONIC, &begun);
	do {
		moves(sender, reader);
		moves(reader, sender);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - begun.tv_sec) * 1000 + (now.tv_nsec - begun.tv_nsec) / 1000000 < JOIN_MS);
}

static long sent_by_tcp(void)
{
	struct tcp_info info = {0};
	socklen_t length = sizeof(info);

	must(getsockopt(sender, IPPROTO_TCP, TCP_INFO, &info, &length) == 0, "TCP_INFO");
	return info.tcpi_bytes_sent;
}

static long sends(int count)
{
	for (int n = 0; n < count; n++)
		must(send(sender, "x", 1, MSG_NOSIGNAL) == 1, "send");
	return count;
}

static long until_by_tcp(long before)
{
	long sent = 0;

	while (sent_by_tcp() == before && sent * MS_EACH < PATIENCE_MS) {
		sent += sends(1);
		poll(NULL, 0, MS_EACH);
	}
	return sent;
}

static long switches(const char *name, long before)
{
	char byte;
	long sent;

	if (!strcmp(name, "pressure") || !strcmp(name, "behind"))
		return sends(MANY);
	sent = sends(FEW);
	if (!strcmp(name, "oob")) {
		/* Nothing is urgent, and where redirected bytes are unread one of them is returned. */
		got = recv(reader, &byte, 1, MSG_OOB) == 1;
		return sent + sends(FEW);
	}
	printf("sent\n");
	fflush(stdout);
	sent += until_by_tcp(before);
	return sent + sends(FEW);
}

/* All of it is in the reader's queue, and the edge of it was given. */
static void arrives(void)
{
	int left = 1;

	while (left) {
		must(ioctl(sender, SIOCOUTQ, &left) == 0, "SIOCOUTQ");
		poll(NULL, 0, 1);
	}
}

static char *page;
static int faults, stops[2];

static void *receives(void *none)
{
	must(recv(stops[1], page, 3, 0) == 3, "recv");
	return none;
}

/* No one else may lock that socket then. */
static void stop_one(pthread_t *thread)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register all = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	struct uffd_msg fault;

	faults = syscall(SYS_userfaultfd, O_CLOEXEC);
	must(ioctl(faults, UFFDIO_API, &api) == 0, "userfaultfd");
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	all.range.start = (uintptr_t)page;
	all.range.len = 4096;
	must(ioctl(faults, UFFDIO_REGISTER, &all) == 0, "UFFDIO_REGISTER");
	must(send(stops[0], "abc", 3, 0) == 3, "send");
	pthread_create(thread, NULL, receives, NULL);
	must(read(faults, &fault, sizeof(fault)) == sizeof(fault), "the fault");
}

static void let_it_go_on(pthread_t thread)
{
	struct uffdio_zeropage zero = {.range = {.start = (uintptr_t)page, .len = 4096}};
	char line;

	printf("waits\n");
	fflush(stdout);
	must(read(0, &line, 1) == 1, "stdin");
	must(ioctl(faults, UFFDIO_ZEROPAGE, &zero) == 0, "UFFDIO_ZEROPAGE");
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET};
	int edges = epoll_create1(0);
	long before, sent, by_tcp, first = 0;
	int is_behind = argc > 1 && !strcmp(argv[1], "behind"), family;
	pthread_t thread;

	if (argc < 4)
		return 2;
	family = atoi(argv[2]) == 6 ? AF_INET6 : AF_INET;
	if (is_behind) {
		connected(family, 0);
		stops[0] = sender;
		stops[1] = reader;
	}
	connected(family, argc > 4 ? atoi(argv[4]) : 0);
	if (!strcmp(argv[3], "back")) {
		int client = sender;

		sender = reader;
		reader = client;
	}
	must(epoll_ctl(edges, EPOLL_CTL_ADD, reader, &event) == 0, "epoll_ctl");
	exchange();
	while (epoll_wait(edges, &event, 1, 0) > 0)
		;
	if (is_behind)
		stop_one(&thread);
	before = sent_by_tcp();
	sent = switches(argv[1], before);
	arrives();
	by_tcp = sent_by_tcp() - before;
	while (got < sent) {
		ssize_t some;

		if (epoll_wait(edges, &event, 1, PATIENCE_MS) <= 0) {
			printf("%ld of %ld bytes, then no edge\n", got, sent);
			return 1;
		}
		some = recv(reader, room, sizeof(room), 0);
		must(some > 0 || (some < 0 && errno == EAGAIN), "recv");
		got += some > 0 ? some : 0;
		if (is_behind && !first)
			let_it_go_on(thread);
		first = first ? first : got;
	}
	printf("{\"sent\": %ld, \"by_tcp\": %ld, \"first\": %ld, \"read\": %ld}\n", sent, by_tcp, first, got);
	return 0;
}
