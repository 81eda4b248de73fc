/* What calls on a connection answer, line by line: a program must not be able to tell whether it is joined.
 * tells ends: connections are disconnected and used again, shut down, and reset, once both ends have exchanged
 *   something for a while.
 * tells torn: one thread sends much at once, another one little, on one connection.
 * tells splice: an end reads by splice(2). tells truncates: with MSG_TRUNC. tells looks: with MSG_PEEK.
 * tells half: sends of no bytes by an end that has shut its writing down, with and without bytes unread.
 * tells flags: sends with MSG_OOB and MSG_FASTOPEN.
 * tells options: those that mean something else for redirected bytes. */
#define _GNU_SOURCE
#include "both_ends.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { PAIRS_MAX = 32 };

struct pair {
	int client, server;
};

static struct pair pairs[PAIRS_MAX];
static int listener;
static volatile sig_atomic_t pipes;

static void on_pipe(int signal)
{
	(void)signal;
	pipes++;
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

/* A port that was asked for stays with a socket that is disconnected: nobody else gets it meanwhile. */
static int keeps_its_port(void)
{
	for (;;) {
		int other = listens(), fd = socket(AF_INET, SOCK_STREAM, 0);
		struct sockaddr_in name = name_of(other);

		close(other);
		if (bind(fd, (void *)&name, sizeof(name)) == 0)
			return fd;
		must(errno == EADDRINUSE, "bind");
		close(fd);
	}
}

/* As long as it takes to be joined. */
static void exchange(int count)
{
	struct timespec now, begun;

	for (int n = 0; n < count; n++) {
		pairs[n].client = keeps_its_port();
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
	int next = has_same_port ? listener : listens(), other;

	printf("reconnects\n");
	must(send(stays, "unread", 6, 0) == 6, "send");
	wait_for(leaves, POLLIN);
	disconnects(leaves);
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

/* The socket may leave the map some looks after the last byte was read. */
static void until_refused(int fd)
{
	for (int ms = 0; ms < PATIENCE_MS && send(fd, "", 0, 0) == 0; ms++)
		poll(NULL, 0, 1);
	pipes = 0;
	say("nothing", send(fd, "", 0, 0));
	printf("signals: %d\n", pipes);
}

static void shuts_and_sends_nothing(int one, int other, int is_unread)
{
	printf("shuts its writing, %s\n", is_unread ? "with bytes unread" : "all read");
	if (is_unread) {
		must(send(other, "unread", 6, 0) == 6, "send");
		wait_for(one, POLLIN);
	}
	must(shutdown(one, SHUT_WR) == 0, "shutdown");
	if (is_unread)
		gets("the first one", one);
	pipes = 0;
	if (!is_unread)
		say("nothing", send(one, "", 0, 0));
	printf("signals: %d\n", pipes);
	until_refused(one);
	gets("the other one", other);
	must(send(other, "answer", 6, 0) == 6, "send");
	gets("the first one", one);
	must(send(other, "unread", 6, 0) == 6, "send");
	wait_for(one, POLLIN);
	close(one);
	wait_for(other, POLLERR);
	gets("the other one", other);
}

/* TCP has nothing more to do: only what is unread keeps the sockets in the map. */
static void both_shut(int one, int other)
{
	printf("both shut their writing with bytes unread\n");
	must(send(one, "unread", 6, 0) == 6, "send");
	must(send(other, "unread", 6, 0) == 6, "send");
	must(shutdown(one, SHUT_WR) == 0, "shutdown");
	must(shutdown(other, SHUT_WR) == 0, "shutdown");
	wait_for(one, POLLHUP);
	wait_for(other, POLLHUP);
	gets("the first one", one);
	gets("the other one", other);
	until_refused(one);
	until_refused(other);
	gets("the first one", one);
	gets("the other one", other);
}

static void half(void)
{
	exchange(6);
	shuts_and_sends_nothing(pairs[0].client, pairs[0].server, 0);
	shuts_and_sends_nothing(pairs[1].server, pairs[1].client, 0);
	shuts_and_sends_nothing(pairs[2].client, pairs[2].server, 1);
	shuts_and_sends_nothing(pairs[3].server, pairs[3].client, 1);
	both_shut(pairs[4].client, pairs[4].server);
	both_shut(pairs[5].server, pairs[5].client);
}

/* The first bytes are redirected. */
static void flags(void)
{
	char byte = 0;

	exchange(2);
	must(send(pairs[0].client, "early", 5, 0) == 5, "send");
	say("opens", send(pairs[0].client, "twice", 5, MSG_FASTOPEN));
	must(send(pairs[0].client, "late", 4, 0) == 4, "send");
	for (int got = 0; got < 9; got++) {
		wait_for(pairs[0].server, POLLIN);
		must(recv(pairs[0].server, &byte, 1, 0) == 1, "recv");
		putchar(byte);
	}
	moves(pairs[1].client, pairs[1].server);
	must(send(pairs[1].client, "now!", 4, MSG_OOB) == 4, "send");
	wait_for(pairs[1].server, POLLPRI);
	must(recv(pairs[1].server, &byte, 1, MSG_OOB) == 1, "MSG_OOB");
	printf("\nurgent: %c\n", byte);
	gets("not urgent", pairs[1].server);
}

enum { SENDERS = 4, LONG = 700000, SHORT = 300, LONG_TIMES = 300, BUFFER = 6 << 20 };

static volatile int is_over;
static volatile long whole[SENDERS];

static size_t length_of(int sender)
{
	return sender & 1 ? SHORT : LONG;
}

/* One after the other: the next one when the last one was read. */
static void *sends(void *number)
{
	int own = (int)(intptr_t)number;
	size_t length = length_of(own);
	char *bytes = malloc(length);

	memset(bytes, 'A' + own, length);
	/* Amid the very first long send a short one may still be on its way (KNOWN_ISSUES): they begin behind it. */
	while (own & 1 && !whole[0] && !is_over)
		poll(NULL, 0, 0);
	for (long n = 0; !is_over; n++) {
		ssize_t sent;

		do {
			sent = send(pairs[0].client, bytes, length, 0);
			must(sent > 0 || errno == EAGAIN, "send");
		} while (sent < 0 && !is_over);
		must(sent < 0 || (size_t)sent == length, "room for all of it");
		while (whole[own] <= n && !is_over)
			poll(NULL, 0, 0);
		if (own == 0 && n == LONG_TIMES)
			is_over = 1;
	}
	free(bytes);
	return NULL;
}

/* A send that does not wait is in one piece, whoever else sends. */
static void torn(void)
{
	char *bytes = malloc(BUFFER);
	int size = BUFFER, sender = 0;
	size_t left = 0, torn = 0;
	pthread_t threads[SENDERS];

	must(setsockopt(listener, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) == 0, "SO_RCVBUFFORCE");
	exchange(1);
	must(setsockopt(pairs[0].client, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) == 0, "SO_SNDBUFFORCE");
	for (intptr_t n = 0; n < SENDERS; n++)
		pthread_create(&threads[n], NULL, sends, (void *)n);
	while (!torn) {
		ssize_t got = recv(pairs[0].server, bytes, BUFFER, 0);

		if (got < 0 && is_over)
			break;
		for (ssize_t n = 0; n < got; n++) {
			if (!left) {
				sender = bytes[n] - 'A';
				left = length_of(sender);
			}
			torn += bytes[n] != 'A' + sender;
			if (--left == 0)
				whole[sender]++;
		}
	}
	is_over = 1;
	for (int n = 0; n < SENDERS; n++)
		pthread_join(threads[n], NULL);
	free(bytes);
	printf("%s\n", torn ? "torn" : "whole");
}

/* As a proxy that moves bytes by splice(2) does from the first byte on. */
static void splices(void)
{
	int pipes_of[2];
	char byte;

	must(pipe(pipes_of) == 0, "pipe");
	pairs[0].client = socket(AF_INET, SOCK_STREAM, 0);
	pairs[0].server = connects(pairs[0].client, listener);
	for (int n = 0; n < JOIN_MS; n++) {
		moves(pairs[0].client, pairs[0].server);
		must(send(pairs[0].server, "y", 1, 0) == 1, "send");
		wait_for(pairs[0].client, POLLIN);
		must(splice(pairs[0].client, NULL, pipes_of[1], NULL, 1, SPLICE_F_NONBLOCK) == 1, "splice");
		must(read(pipes_of[0], &byte, 1) == 1 && byte == 'y', "read");
		poll(NULL, 0, 1);
	}
	printf("all moved\n");
}

static void gets_at_once(const char *who, int fd, int flags)
{
	char bytes[100] = {0};
	ssize_t got = recv(fd, bytes, sizeof(bytes) - 1, flags);

	printf("%s: %zd %s '%s'\n", who, got, got < 0 ? strerrorname_np(errno) : "", bytes);
}

/* MSG_TRUNC throws bytes away, and needs no room for them (tcp(7)). */
static void truncates(void)
{
	pairs[0].client = socket(AF_INET, SOCK_STREAM, 0);
	pairs[0].server = connects(pairs[0].client, listener);
	for (int n = 0; n < JOIN_MS; n++) {
		moves(pairs[0].client, pairs[0].server);
		must(send(pairs[0].server, "thrown away", 11, 0) == 11, "send");
		wait_for(pairs[0].client, POLLIN);
		must(recv(pairs[0].client, NULL, 11, MSG_TRUNC) == 11, "MSG_TRUNC");
		poll(NULL, 0, 1);
	}
	printf("all thrown away\n");
}

/* Until the whole message is there: redirected bytes would hide TCP's behind them. */
static void looks(void)
{
	char bytes[11];

	pairs[0].client = socket(AF_INET, SOCK_STREAM, 0);
	pairs[0].server = connects(pairs[0].client, listener);
	for (int n = 0; n < JOIN_MS; n++) {
		moves(pairs[0].client, pairs[0].server);
		must(send(pairs[0].server, "looked at", 9, 0) == 9, "send");
		wait_for(pairs[0].client, POLLIN);
		must(recv(pairs[0].client, bytes, 9, MSG_PEEK) == 9, "MSG_PEEK");
		must(recv(pairs[0].client, bytes, 9, 0) == 9, "recv");
		poll(NULL, 0, 1);
	}
	printf("all looked at\n");
}

static void with(int fd, int level, int option, int value)
{
	must(setsockopt(fd, level, option, &value, sizeof(value)) == 0, "setsockopt");
}

static void peeks(int from, int to)
{
	char bytes[4] = {0};

	must(send(from, "abcdef", 6, 0) == 6, "send");
	wait_for(to, POLLIN);
	for (int n = 0; n < 3; n++) {
		ssize_t got = recv(to, bytes, 3, MSG_PEEK);
		printf("peeks: %s '%s'\n", got < 0 ? strerrorname_np(errno) : "done", got < 0 ? "" : bytes);
	}
}

static void stamps(int from, int to)
{
	char bytes[10], control[200];
	struct iovec piece = {bytes, sizeof(bytes)};
	struct msghdr message = {
		.msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};

	must(send(from, "x", 1, 0) == 1, "send");
	wait_for(to, POLLIN);
	must(recvmsg(to, &message, 0) == 1, "recvmsg");
	printf("stamp: %zu bytes\n", (size_t)message.msg_controllen);
}

static void options(void)
{
	struct sock_filter none = {BPF_RET | BPF_K, 0, 0, 0};
	struct sock_fprog program = {1, &none};

	with(listener, SOL_SOCKET, SO_TIMESTAMPNS, 1);
	exchange(1);
	stamps(pairs[0].client, pairs[0].server);
	with(listener, SOL_SOCKET, SO_TIMESTAMPNS, 0);
	exchange(5);
	with(pairs[0].client, SOL_SOCKET, SO_PEEK_OFF, 0);
	peeks(pairs[0].server, pairs[0].client);
	with(pairs[1].server, SOL_SOCKET, SO_TIMESTAMPNS, 1);
	stamps(pairs[1].client, pairs[1].server);
	with(pairs[2].client, IPPROTO_TCP, TCP_CORK, 1);
	must(send(pairs[2].client, "corked", 6, 0) == 6, "send");
	gets_at_once("corked", pairs[2].server, 0);
	with(pairs[2].client, IPPROTO_TCP, TCP_CORK, 0);
	gets("then", pairs[2].server);
	must(setsockopt(pairs[3].client, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) == 0, "filter");
	must(send(pairs[3].server, "dropped", 7, 0) == 7, "send");
	moves(pairs[4].client, pairs[4].server);
	gets_at_once("filtered", pairs[3].client, 0);
}

int main(int argc, char **argv)
{
	signal(SIGPIPE, on_pipe);
	setvbuf(stdout, NULL, _IOLBF, 0);
	listener = listens();
	if (argc == 2 && !strcmp(argv[1], "ends"))
		ends();
	else if (argc == 2 && !strcmp(argv[1], "half"))
		half();
	else if (argc == 2 && !strcmp(argv[1], "flags"))
		flags();
	else if (argc == 2 && !strcmp(argv[1], "torn"))
		torn();
	else if (argc == 2 && !strcmp(argv[1], "splice"))
		splices();
	else if (argc == 2 && !strcmp(argv[1], "truncates"))
		truncates();
	else if (argc == 2 && !strcmp(argv[1], "looks"))
		looks();
	else if (argc == 2 && !strcmp(argv[1], "options"))
		options();
	else
		return 2;
	return 0;
}
