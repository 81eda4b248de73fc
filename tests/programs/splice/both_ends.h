/* What programs share that have both ends of a connection, and say line by line what calls on them answer. */
#pragma once
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* To be joined takes less than JOIN_MS of questions and answers. */
enum { PATIENCE_MS = 10000, JOIN_MS = 900 };

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(2);
}

static inline void say(const char *what, ssize_t result)
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

static void moves(int from, int to)
{
	char byte;

	must(send(from, "x", 1, 0) == 1, "send");
	wait_for(to, POLLIN);
	must(recv(to, &byte, 1, 0) == 1, "recv");
}

static inline void gets(const char *who, int fd)
{
	char bytes[100] = {0};
	ssize_t got;

	wait_for(fd, POLLIN | POLLRDHUP);
	got = recv(fd, bytes, sizeof(bytes) - 1, 0);
	printf("%s: %zd %s '%s'\n", who, got, got < 0 ? strerrorname_np(errno) : "", bytes);
}
