/* peeks WAITS WAY [PORT]: a reader that peeks until a whole message is there, for the first time once its connection is joined
 * and more of the message has come than may be redirected. WAITS: `poll`, or `edge` (EPOLLET); WAY: `forth` is from the client
 * to the server, `back` the other way. With a port it says when it has peeked in vain. Then both ends go on; at the end one is
 * closed with bytes unread. */
#define _GNU_SOURCE
#include "joined_pair.h"
#include <sys/epoll.h>
#include <unistd.h>

enum { MESSAGE = 1500, ROUNDS = 300 };

static int sender, reader, edges;
static char message[MESSAGE], room[MESSAGE + 1];

static void waits(int is_edge)
{
	struct epoll_event event;

	if (!is_edge)
		poll(NULL, 0, 1);
	else if (epoll_wait(edges, &event, 1, PATIENCE_MS) <= 0)
		printf("no edge\n");
}

static void sends_and_peeks(int is_edge, int tells)
{
	ssize_t seen = 0;

	for (int n = 0; n < MESSAGE; n++) {
		message[n] = n * 7 + n / 251;
		must(send(sender, message + n, 1, MSG_NOSIGNAL) == 1, "send");
	}
	for (long end = now_ms() + PATIENCE_MS; seen < MESSAGE && now_ms() < end;) {
		waits(is_edge);
		seen = recv(reader, room, sizeof(room), MSG_PEEK);
		must(seen > 0, "MSG_PEEK");
		if (tells && seen < MESSAGE) {
			printf("in vain\n");
			fflush(stdout);
			tells = 0;
		}
	}
	printf("peeked: %zd, %s\n", seen, memcmp(room, message, seen) ? "other bytes" : "the same");
}

/* A receive may find nothing while its connection is released. */
static size_t reads(int fd, size_t all)
{
	size_t got = 0;

	while (got < all) {
		ssize_t some;

		wait_for(fd, POLLIN);
		some = recv(fd, room + got, all - got, 0);
		must(some > 0 || (some < 0 && errno == EAGAIN), "recv");
		got += some > 0 ? some : 0;
	}
	return got;
}

static void reads_message(void)
{
	size_t got = reads(reader, MESSAGE);

	printf("read: %zu, %s\n", got, memcmp(room, message, got) ? "other bytes" : "the same");
}

int main(int argc, char **argv)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET};
	int is_edge = argc > 1 && !strcmp(argv[1], "edge"), both[2];

	if (argc < 3)
		return 2;
	connect_ends(AF_INET, argc > 3 ? atoi(argv[3]) : 0, &sender, &reader);
	if (!strcmp(argv[2], "back")) {
		int client = sender;

		sender = reader;
		reader = client;
	}
	edges = epoll_create1(0);
	must(epoll_ctl(edges, EPOLL_CTL_ADD, reader, &event) == 0, "epoll_ctl");
	exchange(sender, reader);
	while (epoll_wait(edges, &event, 1, 0) > 0)
		;
	sends_and_peeks(is_edge, argc > 3);
	/* Somewhere in between the connection is plain again. */
	reads_message();
	both[0] = sender;
	both[1] = reader;
	for (int n = 0; n < ROUNDS; n++) {
		for (int from = 0; from < 2; from++) {
			must(send(both[from], "round", 5, 0) == 5, "send");
			reads(both[1 - from], 5);
		}
		poll(NULL, 0, 1);
	}
	must(send(sender, "unread", 6, 0) == 6, "send");
	wait_for(reader, POLLIN);
	close(reader);
	gets("the sender", sender);
	return 0;
}
