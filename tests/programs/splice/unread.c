/* An end is closed with bytes unread, and the other one is told so. Says line by line what it is told: the same on a
 * redirected connection as on another one.
 * unread ADDRESS [NAMESPACE NAMESPACE]: the server listens there; network namespaces of server and client. */
#define _GNU_SOURCE
#include "both_ends.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum ending { CLOSES, SAID_SOMETHING, OTHER_IS_SHUT, IS_KILLED, ENDINGS };

enum { BLOCKING_MS = 200 };

static const char *const NAMES[] = {
	"closes", "sends and closes", "closes after the other one's shutdown", "is killed"};

struct pair {
	int ends[2];
};

static struct pair pairs[2 * ENDINGS];

static void enter(const char *namespace)
{
	char path[100];
	int fd;

	if (!namespace)
		return;
	snprintf(path, sizeof(path), "/run/netns/%s", namespace);
	fd = open(path, O_RDONLY);
	must(fd >= 0 && setns(fd, CLONE_NEWNET) == 0, namespace);
	close(fd);
}

static socklen_t name_of(struct sockaddr_storage *name, const char *address)
{
	struct sockaddr_in *v4 = (void *)name;
	struct sockaddr_in6 *v6 = (void *)name;

	memset(name, 0, sizeof(*name));
	if (inet_pton(AF_INET, address, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		return sizeof(*v4);
	}
	must(inet_pton(AF_INET6, address, &v6->sin6_addr) == 1, address);
	v6->sin6_family = AF_INET6;
	return sizeof(*v6);
}

static void connects(char **arguments)
{
	struct sockaddr_storage name;
	socklen_t length = name_of(&name, arguments[0]);
	const char *server = arguments[1], *client = server ? arguments[2] : NULL;
	int listener;

	enter(server);
	listener = socket(name.ss_family, SOCK_STREAM, 0);
	must(bind(listener, (void *)&name, length) == 0 && listen(listener, 2 * ENDINGS) == 0, "listen");
	must(getsockname(listener, (void *)&name, &length) == 0, "getsockname");
	enter(client);
	for (int n = 0; n < 2 * ENDINGS; n++) {
		int *ends = pairs[n].ends;

		ends[0] = socket(name.ss_family, SOCK_STREAM, 0);
		must(connect(ends[0], (void *)&name, length) == 0, "connect");
		ends[1] = accept(listener, NULL, NULL);
		must(ends[1] >= 0, "accept");
	}
	close(listener);
}

static void exchange(int for_ms)
{
	struct timespec now, begun;

	clock_gettime(CLOCK_MONOTONIC, &begun);
	do {
		for (int n = 0; n < 2 * ENDINGS; n++) {
			moves(pairs[n].ends[0], pairs[n].ends[1]);
			moves(pairs[n].ends[1], pairs[n].ends[0]);
		}
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - begun.tv_sec) * 1000 + (now.tv_nsec - begun.tv_nsec) / 1000000 < for_ms);
}

/* All of its descriptors are with a process that is killed. */
static void killed_with(int end)
{
	int ready[2];
	pid_t child;
	char byte;

	must(pipe(ready) == 0, "pipe");
	child = fork();
	if (child == 0) {
		must(write(ready[1], "r", 1) == 1, "write");
		for (;;)
			pause();
	}
	must(read(ready[0], &byte, 1) == 1, "read");
	close(end);
	kill(child, SIGKILL);
	must(waitpid(child, NULL, 0) == child, "waitpid");
	close(ready[0]);
	close(ready[1]);
}

/* Whoever resets a connection is done with it. */
static void is_free(const struct sockaddr_storage *name, socklen_t length)
{
	int again = socket(name->ss_family, SOCK_STREAM, 0);

	must(again >= 0, "socket");
	say("its port again", bind(again, (void *)name, length));
	close(again);
}

static void ends(enum ending how, int closed, int other, int is_client)
{
	struct pollfd one = {.fd = other, .events = POLLIN | POLLOUT | POLLRDHUP};
	struct sockaddr_storage name;
	socklen_t length = sizeof(name);

	must(getsockname(closed, (void *)&name, &length) == 0, "getsockname");
	printf("%s\n", NAMES[how]);
	if (how == SAID_SOMETHING)
		must(send(closed, "the last", 8, 0) == 8, "send");
	must(send(other, "unread", 6, 0) == 6, "send");
	wait_for(closed, POLLIN);
	if (how == OTHER_IS_SHUT) {
		must(shutdown(other, SHUT_WR) == 0, "shutdown");
		wait_for(closed, POLLRDHUP);
	}
	if (how == IS_KILLED)
		killed_with(closed);
	else
		close(closed);
	wait_for(other, POLLERR);
	must(poll(&one, 1, 0) == 1, "poll");
	printf("events: %#x\n", one.revents);
	gets("the other end", other);
	gets("and then", other);
	say("sends", send(other, "late", 4, MSG_NOSIGNAL));
	/* The server's is that of all its connections. */
	if (is_client)
		is_free(&name, length);
	close(other);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 2 && argc != 4)
		return 2;
	connects(argv + 1);
	/* Looks at the ends come while their recv may still wait, too. */
	exchange(BLOCKING_MS);
	for (int n = 0; n < 4 * ENDINGS; n++)
		may_not_wait(pairs[n / 2].ends[n % 2]);
	exchange(JOIN_MS);
	for (int n = 0; n < 2 * ENDINGS; n++)
		ends(n / 2, pairs[n].ends[n % 2], pairs[n].ends[1 - n % 2], n % 2 == 0);
	return 0;
}
