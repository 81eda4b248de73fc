/* edges CASE FAMILY WAY [PORT]: a reader that waits for edges (EPOLLET) and takes a receive of less than it asked for as the
 * end of what there is (epoll(7)), while its connection returns to TCP with redirected bytes unread. FAMILY: 4 or 6; WAY:
 * `forth` is from the client to the server, `back` the other way.
 *   pressure: more messages than may be redirected. oob: the reader receives with MSG_OOB.
 *   left: after a line on stdout it waits until messages take TCP.
 *   behind: as pressure, while a receive of another connection stops in a page fault (userfaultfd) with its socket locked, until
 *     there is a line on stdin; says when it waits for the edge. */
#define _GNU_SOURCE
#include "held_page.h"
#include "joined_pair.h"
#include <linux/sockios.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { FEW = 100, MANY = 1500, ROOM = 65536, MS_EACH = 5 };

static char room[ROOM];
static int sender, reader;
static long got;

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

static int stops[2];

static void *receives(void *none)
{
	must(recv(stops[1], page, 3, 0) == 3, "recv");
	return none;
}

/* No one else may lock that socket then. */
static void stop_one(pthread_t *thread)
{
	struct uffd_msg fault;

	hold_page();
	must(send(stops[0], "abc", 3, 0) == 3, "send");
	pthread_create(thread, NULL, receives, NULL);
	must(read(page_faults, &fault, sizeof(fault)) == sizeof(fault), "the fault");
}

static void let_it_go_on(pthread_t thread)
{
	char line;

	printf("waits\n");
	fflush(stdout);
	must(read(0, &line, 1) == 1, "stdin");
	let_go_on();
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
	if (is_behind)
		connect_ends(family, 0, &stops[0], &stops[1]);
	connect_ends(family, argc > 4 ? atoi(argv[4]) : 0, &sender, &reader);
	if (!strcmp(argv[3], "back")) {
		int client = sender;

		sender = reader;
		reader = client;
	}
	must(epoll_ctl(edges, EPOLL_CTL_ADD, reader, &event) == 0, "epoll_ctl");
	exchange(sender, reader);
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
