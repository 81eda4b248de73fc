/* What calls on a connection answer, line by line: a program must not be able to tell whether it is joined.
 * tells ends: connections are disconnected and used again, shut down, and reset, once both ends have exchanged
 *   something for a while. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PAIRS_MAX = 32, PATIENCE_MS = 10000, JOIN_MS = 900 };

struct pair {
	int client, server;
};

static struct pair pairs[PAIRS_MAX];
static int listener;
static volatile sig_atomic_t pipes;

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(2);
}

static void on_pipe(int signal)
{
	(void)signal;
	pipes++;
}

static void say(const char *what, ssize_t result)
{
	printf("%s: %s\n", what, result < 0 ? strerrorname_np(errno) : "done");
}

static void may_not_wait(int fd)
{
	must(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == 0, "fcntl");
}

static void wait_for(int fd, short events)
{
	struct pollfd one = {.fd = fd, .events = events};

	must(poll(&one, 1, PATIENCE_MS) == 1, "poll");
}

static int listens(void)
{
	struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	must(bind(fd, (void *)&name, sizeof(name)) == 0 && listen(fd, PAIRS_MAX) == 0, "listen");
	return fd;
}

static struct sockaddr_in name_of(int fd)
{
	struct sockaddr_in name;
	socklen_t length = sizeof(name);

	must(getsockname(fd, (void *)&name, &length) == 0, "getsockname");
	return name;
}

static int connects(int fd, int to)
{
	struct sockaddr_in name = name_of(to);
	int other;

	must(connect(fd, (void *)&name, sizeof(name)) == 0 || errno == EINPROGRESS, "connect");
	wait_for(to, POLLIN);
	other = accept(to, NULL, NULL);
	must(other >= 0, "accept");
	wait_for(fd, POLLOUT);
	may_not_wait(fd);
	may_not_wait(other);
	return other;
}

static void moves(int from, int to)
{
	char byte;

	must(send(from, "x", 1, 0) == 1, "send");
	wait_for(to, POLLIN);
	must(recv(to, &byte, 1, 0) == 1, "recv");
}

/* As long as it takes to be joined. */
static void exchange(int count)
{
	struct timespec now, begun;

	for (int n = 0; n < count; n++) {
		pairs[n].client = socket(AF_INET, SOCK_STREAM, 0);
		pairs[n].server = connects(pairs[n].client, listener);
	}
	clock_gettime(CLOCK_MONOTONIC, &begun);
	do {
		for (int n = 0; n < count; n++) {
			moves(pairs[n].client, pairs[n].server);
			moves(pairs[n].server, pairs[n].client);
		}
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - begun.tv_sec) * 1000 + (now.tv_nsec - begun.tv_nsec) / 1000000 < JOIN_MS);
}

static void gets(const char *who, int fd)
{
	char bytes[100] = {0};
	ssize_t got;

	wait_for(fd, POLLIN | POLLRDHUP);
	got = recv(fd, bytes, sizeof(bytes) - 1, 0);
	printf("%s: %zd %s '%s'\n", who, got, got < 0 ? strerrorname_np(errno) : "", bytes);
}

static void disconnects(int fd)
{
	struct sockaddr none = {.sa_family = AF_UNSPEC};

	must(connect(fd, &none, sizeof(none)) == 0, "disconnect");
}

static void exchanges_names(int one, int other)
{
	must(send(one, "to the new one", 14, 0) == 14, "send");
	gets("the new one", other);
	must(send(other, "from the new one", 16, 0) == 16, "send");
	gets("the same socket", one);
}

/* Either end leaves with something unread, and talks to somebody else. */
static void reconnects(int leaves, int stays, int has_same_port)
{
	struct sockaddr_in before = name_of(leaves);
	int next = has_same_port ? listener : listens(), other;

	printf("reconnects\n");
	must(send(stays, "unread", 6, 0) == 6, "send");
	wait_for(leaves, POLLIN);
	disconnects(leaves);
	if (has_same_port)
		must(bind(leaves, (void *)&before, sizeof(before)) == 0, "bind");
	other = connects(leaves, next);
	exchanges_names(leaves, other);
	gets("the old peer", stays);
	say("the old peer sends", send(stays, "late", 4, 0));
}

static void listens_instead(int leaves, int stays)
{
	int client = socket(AF_INET, SOCK_STREAM, 0), other;

	printf("listens\n");
	must(send(stays, "unread", 6, 0) == 6, "send");
	wait_for(leaves, POLLIN);
	disconnects(leaves);
	must(listen(leaves, 5) == 0, "listen");
	other = connects(client, leaves);
	exchanges_names(client, other);
	gets("the old peer", stays);
}

static void shuts(int one, int other)
{
	printf("shuts its writing\n");
	must(shutdown(one, SHUT_WR) == 0, "shutdown");
	pipes = 0;
	say("sends", send(one, "late", 4, 0));
	printf("signals: %d\n", pipes);
	gets("the other one", other);
	must(send(other, "answer", 6, 0) == 6, "send");
	gets("the first one", one);
}

static void shuts_both_ways(int one, int other)
{
	printf("shuts both ways\n");
	must(send(other, "unread", 6, 0) == 6, "send");
	wait_for(one, POLLIN);
	must(shutdown(one, SHUT_RDWR) == 0, "shutdown");
	wait_for(other, POLLRDHUP);
	gets("the first one", one);
	say("the other one sends", send(other, "late", 4, 0));
	wait_for(other, POLLERR);
	pipes = 0;
	say("and again", send(other, "late", 4, 0));
	printf("signals: %d\n", pipes);
	gets("the first one", one);
}

static void resets(int one, int other)
{
	struct linger at_once = {.l_onoff = 1};

	printf("resets\n");
	must(setsockopt(one, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)) == 0, "SO_LINGER");
	close(one);
	wait_for(other, POLLERR);
	pipes = 0;
	say("sends", send(other, "late", 4, 0));
	say("and again", send(other, "late", 4, 0));
	say("and nothing", send(other, "", 0, 0));
	printf("signals: %d\n", pipes);
	gets("the other one", other);
}

static void ends(void)
{
	exchange(8);
	reconnects(pairs[0].client, pairs[0].server, 0);
	reconnects(pairs[1].server, pairs[1].client, 0);
	reconnects(pairs[2].client, pairs[2].server, 1);
	listens_instead(pairs[3].client, pairs[3].server);
	shuts(pairs[4].client, pairs[4].server);
	shuts(pairs[5].server, pairs[5].client);
	shuts_both_ways(pairs[6].client, pairs[6].server);
	resets(pairs[7].server, pairs[7].client);
}

int main(int argc, char **argv)
{
	signal(SIGPIPE, on_pipe);
	setvbuf(stdout, NULL, _IOLBF, 0);
	listener = listens();
	if (argc == 2 && !strcmp(argv[1], "ends"))
		ends();
	else
		return 2;
	return 0;
}
