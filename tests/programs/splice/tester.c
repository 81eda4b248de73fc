/* Connections to an echo server, every byte of every answer compared.
 * tester ADDRESS PORT CONNECTIONS AT_ONCE [SOURCES]
 * Connection n does, by n modulo 3: messages of growing sizes, each awaited; the same and then
 * shutdown, after which the server's end must come; one message and shutdown at once. SOURCES: that
 * many local addresses from 127.0.0.1 on, in turn.
 * Says one line of JSON; 1 when a connection hung, or lost or changed a byte. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* Nothing moved at all for so long: what is open hangs. */
enum { PATIENCE_MS = 10000, LARGEST = 128 << 10 };

static const int SIZES[] = {1, 13, 64, 333, 1460, 4096, 5000, 16384, 20000, 40000, 131072};
enum { SIZES_N = sizeof(SIZES) / sizeof(*SIZES) };

struct connection {
	int fd, kind, message, has_shut, is_connected;
	unsigned number;
	/* Within the message: sent, and come back. */
	int sent, back;
	unsigned events;
};

static int epoll;
static struct sockaddr_storage server;
static socklen_t server_length;
static unsigned long bytes, done, lost, corrupt, failed;
static unsigned sources;
/* A window into it, at another place for each connection and message, is the message. */
static unsigned char pattern[LARGEST + (1 << 16)];

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(2);
}

static const unsigned char *text(const struct connection *c)
{
	return pattern + (c->number * 7919u + c->message * 104729u) % (1 << 16);
}

static int size_of(const struct connection *c)
{
	return c->kind == 2 ? SIZES[c->number % SIZES_N] : SIZES[c->message];
}

static int last_of(const struct connection *c)
{
	return c->kind == 2 ? 0 : SIZES_N - 1;
}

static void want(struct connection *c, unsigned events)
{
	struct epoll_event event = {.events = events, .data.ptr = c};

	if (events == c->events)
		return;
	must(epoll_ctl(epoll, c->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, c->fd, &event) == 0, "epoll_ctl");
	c->events = events;
}

static void begin(struct connection *c, unsigned number)
{
	int one = 1;

	*c = (struct connection){.number = number, .kind = number % 3};
	c->fd = socket(server.ss_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
	must(c->fd >= 0, "socket");
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (sources > 1) {
		struct sockaddr_in from = {.sin_family = AF_INET};
		from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + number % sources);
		setsockopt(c->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
		must(bind(c->fd, (void *)&from, sizeof(from)) == 0, "bind");
	}
	int tried = connect(c->fd, (void *)&server, server_length);
	must(tried == 0 || errno == EINPROGRESS, "connect");
	want(c, EPOLLOUT);
}

/* 0 when the connection is over. */
static int go_on(struct connection *c, unsigned events)
{
	static unsigned char read[LARGEST];

	if (!c->is_connected) {
		int error = 0;
		socklen_t length = sizeof(error);
		getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &length);
		if (error) {
			failed++;
			return 0;
		}
		c->is_connected = 1;
	}
	for (;;) {
		int size = size_of(c), is_last = c->message == last_of(c), is_blocked = 0;
		while (c->sent < size && !is_blocked) {
			ssize_t n = send(c->fd, text(c) + c->sent, size - c->sent, MSG_NOSIGNAL);
			if (n < 0 && errno == EAGAIN)
				is_blocked = 1;
			else if (n < 0) {
				failed++;
				return 0;
			} else
				c->sent += n;
		}
		if (c->sent == size && is_last && c->kind != 0 && !c->has_shut) {
			shutdown(c->fd, SHUT_WR);
			c->has_shut = 1;
		}
		ssize_t n = recv(c->fd, read, sizeof(read), 0);
		if (n < 0 && errno == EAGAIN) {
			want(c, is_blocked ? EPOLLIN | EPOLLOUT : EPOLLIN);
			return 1;
		}
		if (n < 0) {
			failed++;
			return 0;
		}
		if (n == 0) {
			if (c->has_shut && c->back == size)
				done++;
			else
				lost++;
			return 0;
		}
		if (c->back + n > c->sent || memcmp(read, text(c) + c->back, n)) {
			corrupt++;
			return 0;
		}
		bytes += n;
		c->back += n;
		if (c->back < size || c->has_shut)
			continue;
		if (is_last) {
			done++;
			return 0;
		}
		c->message++;
		c->sent = c->back = 0;
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in6 *v6 = (void *)&server;
	struct sockaddr_in *v4 = (void *)&server;
	struct rlimit files;
	uint32_t word = 1;

	must(argc >= 5, "tester ADDRESS PORT CONNECTIONS AT_ONCE [SOURCES]");
	unsigned total = atoi(argv[3]), at_once = atoi(argv[4]), begun = 0, open = 0;
	sources = argc > 5 ? atoi(argv[5]) : 1;
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	for (size_t n = 0; n < sizeof(pattern); n++) {
		word = word * 1664525u + 1013904223u;
		pattern[n] = word >> 24;
	}
	if (strchr(argv[1], ':')) {
		server_length = sizeof(*v6);
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(atoi(argv[2]));
		must(inet_pton(AF_INET6, argv[1], &v6->sin6_addr) == 1, "address");
	} else {
		server_length = sizeof(*v4);
		v4->sin_family = AF_INET;
		v4->sin_port = htons(atoi(argv[2]));
		must(inet_pton(AF_INET, argv[1], &v4->sin_addr) == 1, "address");
	}
	epoll = epoll_create1(0);
	struct connection *all = calloc(at_once, sizeof(*all));
	while (open < at_once && begun < total)
		begin(&all[open++], begun++);
	while (open > 0) {
		struct epoll_event events[256];
		int count = epoll_wait(epoll, events, 256, PATIENCE_MS);
		if (count == 0)
			break;
		for (int n = 0; n < count; n++) {
			struct connection *c = events[n].data.ptr;
			if (go_on(c, events[n].events))
				continue;
			close(c->fd);
			if (begun < total)
				begin(c, begun++);
			else
				open--;
		}
	}
	printf("{\"connections\": %lu, \"bytes\": %lu, \"hung\": %u, \"lost\": %lu, \"corrupt\": %lu, "
	       "\"failed\": %lu}\n",
	       done, bytes, open, lost, corrupt, failed);
	return open || lost || corrupt || failed || done != total;
}
