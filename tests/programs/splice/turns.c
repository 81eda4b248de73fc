/* Two processes that send each other 64 bytes over one connection, without waiting in a receive; until stdin ends.
 * turns alternate PORT: question and answer.
 * turns together PORT: both send, work for a millisecond at the same time, then read.
 * Says the process ids, server's first. After SIGUSR1 the server makes a process, and says its id. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t is_asked;

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static void asked(int signal)
{
	(void)signal;
	is_asked = 1;
}

static void make_one(void)
{
	pid_t born = fork();

	must(born >= 0, "fork");
	if (born == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	printf("%d\n", born);
	fflush(stdout);
}

static void work(void)
{
	struct timespec begun, now;

	clock_gettime(CLOCK_MONOTONIC, &begun);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - begun.tv_sec) * 1000000000L + now.tv_nsec - begun.tv_nsec < 1000000);
}

/* 0: the connection is over. */
static int receive(int fd, char *bytes, size_t size)
{
	size_t got = 0;

	while (got < size) {
		struct pollfd one = {.fd = fd, .events = POLLIN};
		ssize_t n = recv(fd, bytes + got, size - got, 0);

		if (n > 0)
			got += n;
		else if (n == 0 || errno != EAGAIN)
			return 0;
		else if (poll(&one, 1, -1) < 0)
			must(errno == EINTR, "poll");
		if (is_asked) {
			is_asked = 0;
			make_one();
		}
	}
	return 1;
}

static void talk(int fd, int begins, int together)
{
	char bytes[64] = {0};
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	fcntl(fd, F_SETFL, O_NONBLOCK);
	for (;;) {
		if ((begins || together) && send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) < 0)
			return;
		if (together)
			work();
		if (!receive(fd, bytes, sizeof(bytes)))
			return;
		if (!begins && !together && send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) < 0)
			return;
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1, fd;
	pid_t client, server;
	char byte;

	must(argc == 3, "turns alternate|together PORT");
	int together = strcmp(argv[1], "together") == 0;
	at.sin_port = htons(atoi(argv[2]));
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	must(bind(listener, (void *)&at, sizeof(at)) == 0 && listen(listener, 1) == 0, "listen");
	server = fork();
	if (server == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGUSR1, asked);
		must((fd = accept(listener, NULL, NULL)) >= 0, "accept");
		talk(fd, 0, together);
		for (;;)
			pause();
	}
	client = fork();
	if (client == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fd = socket(AF_INET, SOCK_STREAM, 0);
		must(connect(fd, (void *)&at, sizeof(at)) == 0, "connect");
		talk(fd, 1, together);
		return 0;
	}
	printf("%d %d\n", server, client);
	fflush(stdout);
	return read(STDIN_FILENO, &byte, 1) < 0;
}
