/* A plain echo server: one thread, epoll, nothing special about it. What cannot be sent waits and
 * reading pauses; a client's end is answered by ours once all is sent.
 * server ADDRESS READY_FILE [PORT]: with a port connections are established by their first bytes only
 * (TCP_DEFER_ACCEPT). */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ROOM = 256 << 10 };

struct connection {
	int fd;
	int has_ended;
	size_t from, to;
	char *bytes;
};

static int epoll;

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static void watch(struct connection *c, int operation, unsigned events)
{
	struct epoll_event event = {.events = events, .data.ptr = c};

	must(epoll_ctl(epoll, operation, c->fd, &event) == 0, "epoll_ctl");
}

static void end(struct connection *c)
{
	close(c->fd);
	free(c->bytes);
	free(c);
}

/* Until nothing comes and nothing waits; 0 when the connection is over. */
static int serve(struct connection *c)
{
	for (;;) {
		while (c->from < c->to) {
			ssize_t n = send(c->fd, c->bytes + c->from, c->to - c->from, MSG_NOSIGNAL);
			if (n < 0 && errno == EAGAIN) {
				watch(c, EPOLL_CTL_MOD, EPOLLOUT);
				return 1;
			}
			if (n < 0)
				return 0;
			c->from += n;
		}
		if (c->has_ended)
			return 0;
		ssize_t n = recv(c->fd, c->bytes, ROOM, 0);
		if (n < 0 && errno == EAGAIN) {
			watch(c, EPOLL_CTL_MOD, EPOLLIN);
			return 1;
		}
		if (n < 0)
			return 0;
		c->has_ended = n == 0;
		c->from = 0;
		c->to = n;
	}
}

static int listen_on(const char *address, const char *ready, int port)
{
	int is_v6 = strchr(address, ':') != NULL, one = 1, zero = 0, seconds = 60;
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
	socklen_t length = is_v6 ? sizeof(v6) : sizeof(v4);
	struct sockaddr *name = is_v6 ? (void *)&v6 : (void *)&v4;
	int fd = socket(name->sa_family, SOCK_STREAM | SOCK_NONBLOCK, 0);

	must(fd >= 0, "socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (is_v6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
	must(inet_pton(name->sa_family, address, is_v6 ? (void *)&v6.sin6_addr : (void *)&v4.sin_addr) == 1,
	     "address");
	must(bind(fd, name, length) == 0, "bind");
	if (port)
		setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof(seconds));
	must(listen(fd, 4096) == 0, "listen");
	must(getsockname(fd, name, &length) == 0, "getsockname");
	/* A pipe with a name, so that whoever reads it waits for it. */
	FILE *file = fopen(ready, "w");
	must(file != NULL, ready);
	fprintf(file, "%d\n", ntohs(is_v6 ? v6.sin6_port : v4.sin_port));
	fclose(file);
	return fd;
}

int main(int argc, char **argv)
{
	struct rlimit files;

	must(argc >= 3, "server ADDRESS READY_FILE [PORT]");
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	epoll = epoll_create1(0);
	struct connection listener = {.fd = listen_on(argv[1], argv[2], argc > 3 ? atoi(argv[3]) : 0)};
	watch(&listener, EPOLL_CTL_ADD, EPOLLIN);
	for (;;) {
		struct epoll_event events[256];
		int count = epoll_wait(epoll, events, 256, -1);
		for (int n = 0; n < count; n++) {
			struct connection *c = events[n].data.ptr;
			if (c != &listener) {
				if (!serve(c))
					end(c);
				continue;
			}
			int fd, one = 1;
			while ((fd = accept4(listener.fd, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
				setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
				c = calloc(1, sizeof(*c));
				c->fd = fd;
				c->bytes = malloc(ROOM);
				watch(c, EPOLL_CTL_ADD, EPOLLIN);
			}
		}
	}
}
