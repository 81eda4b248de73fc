/* Calls where malloc(3) has nothing any more: no_memory OWN PEER PORT. Each succeeds, or fails for want of memory; what was connected
 * before goes on, also when there are so many sockets that no more are to be had. Prints how many did what. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ROUNDS = 30, SOCKETS_MAX = 15000 };

static struct sockaddr_in peer = {.sin_family = AF_INET}, own = {.sin_family = AF_INET};
static int echoed, done, refused, other;

static void counted(const char *what, long result)
{
	if (result >= 0)
		done++;
	else if (errno == ENOMEM || errno == ENOBUFS)
		refused++;
	else if (++other)
		dprintf(2, "%s: %d\n", what, errno);
}

static int echoes(int fd)
{
	char back[4];

	return send(fd, "echo", 4, MSG_NOSIGNAL) == 4 && recv(fd, back, 4, MSG_WAITALL) == 4 && memcmp(back, "echo", 4) == 0;
}

static void use_memory_up(void)
{
	struct rlimit limit = {1, RLIM_INFINITY};

	if (setrlimit(RLIMIT_AS, &limit) != 0)
		exit(2);
	for (size_t size = 1 << 20; size >= 8; size /= 2)
		while (malloc(size))
			;
}

int main(int count, char **arguments)
{
	int connected, listener;

	if (count != 4)
		return 2;
	inet_pton(AF_INET, arguments[1], &own.sin_addr);
	inet_pton(AF_INET, arguments[2], &peer.sin_addr);
	peer.sin_port = htons((unsigned short)atoi(arguments[3]));
	own.sin_port = htons(7400);
	connected = socket(AF_INET, SOCK_STREAM, 0);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(connected, (void *)&peer, sizeof(peer)) || bind(listener, (void *)&own, sizeof(own)) || listen(listener, 5))
		return 3;
	fcntl(listener, F_SETFL, O_NONBLOCK);
	use_memory_up();
	for (int round = 0; round < ROUNDS; round++) {
		struct epoll_event event = {.events = EPOLLIN};
		int stream = socket(AF_INET, SOCK_STREAM, 0), datagrams = socket(AF_INET, SOCK_DGRAM, 0);
		int set = epoll_create1(0);

		counted("socket", stream);
		counted("socket of UDP", datagrams);
		counted("epoll_create1", set);
		echoed += echoes(connected);
		if (stream >= 0) {
			int begun = connect(stream, (void *)&peer, sizeof(peer));

			counted("connect", begun);
			if (begun == 0)
				counted("echo", echoes(stream) ? 0 : -1);
		}
		if (datagrams >= 0)
			counted("sendto", sendto(datagrams, "x", 1, 0, (void *)&peer, sizeof(peer)));
		if (set >= 0)
			counted("epoll_ctl", epoll_ctl(set, EPOLL_CTL_ADD, connected, &event));
		if (accept(listener, NULL, NULL) < 0 && errno != EAGAIN)
			counted("accept", -1);
		/* Every other round's stay. */
		if (round % 2) {
			close(stream);
			close(datagrams);
			close(set);
		}
	}
	for (int opened = 0; refused == 0 && opened < SOCKETS_MAX; opened++)
		counted("another socket", socket(AF_INET, SOCK_STREAM, 0));
	echoed += echoes(connected);
	printf("%d echoed, %d done, %d refused, %d other\n", echoed, done, refused, other);
	return other || echoed != ROUNDS + 1;
}
