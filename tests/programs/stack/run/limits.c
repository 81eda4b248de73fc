/* limits PEER PORT OWN OTHER: what the kernel refuses, and how it is fair: a line each. PEER echoes; OWN is an address to bind. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

enum { EACH = 3, CALLS = 300, MANY = 8 };

static struct sockaddr_in peer = {.sin_family = AF_INET}, own = {.sin_family = AF_INET};

static void say(const char *what, long result)
{
	printf("%s: %ld %s\n", what, result, result < 0 ? strerrorname_np(errno) : "");
}

static int connected(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (connect(fd, (struct sockaddr *)&peer, sizeof(peer)) || send(fd, "x", 1, 0) != 1) {
		perror("connect");
		exit(1);
	}
	return fd;
}

/* As many descriptors of TCP as pipes are ready: how often is each told of? */
static void fair(int most)
{
	int set = epoll_create1(0), fds[2 * EACH], told[2 * EACH] = {0}, unheard = 0, over = 0;
	struct epoll_event events[MANY], event = {.events = EPOLLIN};

	for (int n = 0; n < 2 * EACH; n++) {
		struct pollfd waits;
		if (n < EACH) {
			fds[n] = connected();
		} else {
			int pipes[2];
			if (pipe(pipes) || write(pipes[1], "x", 1) != 1)
				exit(2);
			fds[n] = pipes[0];
		}
		waits = (struct pollfd){.fd = fds[n], .events = POLLIN};
		poll(&waits, 1, 60000);
		event.data.u32 = n;
		epoll_ctl(set, EPOLL_CTL_ADD, fds[n], &event);
	}
	for (int call = 0; call < CALLS; call++) {
		int got = epoll_wait(set, events, most, 0);
		over += got < (most < 2 * EACH ? most : 2 * EACH);
		for (int n = 0; n < got; n++)
			told[events[n].data.u32]++;
	}
	for (int n = 0; n < 2 * EACH; n++) {
		unheard += told[n] < CALLS * most / (2 * EACH) / 4;
		close(fds[n]);
	}
	printf("of %d at once: %d are not heard, %d calls were not full\n", most, unheard, over);
	close(set);
}

/* All that is ready is of one kind. */
static void full(int most)
{
	int set = epoll_create1(0), fds[MANY];
	struct epoll_event events[MANY], event = {.events = EPOLLIN};

	for (int n = 0; n < MANY; n++) {
		struct pollfd waits = {.fd = fds[n] = connected(), .events = POLLIN};
		poll(&waits, 1, 60000);
		epoll_ctl(set, EPOLL_CTL_ADD, fds[n], &event);
	}
	printf("%d of %d\n", epoll_wait(set, events, most, 0), most);
	for (int n = 0; n < MANY; n++)
		close(fds[n]);
	close(set);
}

static void times(int kind, struct timeval span)
{
	int fd = socket(AF_INET, kind, 0);
	char byte;

	if (connect(fd, (struct sockaddr *)&peer, sizeof(peer)))
		exit(3);
	say("time", setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &span, sizeof(span)));
	if (span.tv_sec < 0)
		say("recv", recv(fd, &byte, 1, 0));
	close(fd);
}

int main(int argc, char **argv)
{
	char bytes[8];
	struct iovec endless[2] = {{bytes, 2}, {bytes, (size_t)-1}};
	struct iovec nothing[2] = {{bytes, 0}, {bytes, 0}};
	struct msghdr message = {.msg_iov = endless, .msg_iovlen = 2, .msg_name = &peer, .msg_namelen = sizeof(peer)};
	int fd;

	if (argc != 4)
		return 2;
	setvbuf(stdout, NULL, _IONBF, 0);
	inet_pton(AF_INET, argv[1], &peer.sin_addr);
	peer.sin_port = htons(atoi(argv[2]));
	inet_pton(AF_INET, argv[3], &own.sin_addr);

	fd = connected();
	say("writev", writev(fd, endless, 2));
	say("readv", readv(fd, endless, 2));
	say("sendmsg", sendmsg(fd, &message, 0));
	say("recvmsg", recvmsg(fd, &message, 0));
	poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 60000);
	say("readv of nothing", readv(fd, nothing, 2));
	message.msg_iov = nothing;
	say("recvmsg of nothing", recvmsg(fd, &message, 0));
	message.msg_iov = endless;
	say("recv", recv(fd, bytes, sizeof(bytes), 0));
	close(fd);
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	bind(fd, (struct sockaddr *)&own, sizeof(own));
	say("sendmsg of a datagram", sendmsg(fd, &message, 0));
	say("recvmsg of a datagram", recvmsg(fd, &message, MSG_DONTWAIT));
	close(fd);
	for (int kind = SOCK_STREAM; kind <= SOCK_DGRAM; kind++) {
		times(kind, (struct timeval){-1, 0});
		times(kind, (struct timeval){0, 1000000});
		times(kind, (struct timeval){0, -1});
		fd = socket(AF_INET6, kind, 0);
		say("bind of the other family", bind(fd, (struct sockaddr *)&own, sizeof(own)));
		close(fd);
		fd = socket(AF_INET, kind, 0);
		say("bind, too short", bind(fd, (struct sockaddr *)&own, 15));
		say("connect, too short", connect(fd, (struct sockaddr *)&peer, 8));
		say("connect, one byte too short", connect(fd, (struct sockaddr *)&peer, 15));
		/* UDP has a port by that. */
		close(fd);
		fd = socket(AF_INET, kind, 0);
		say("bind", bind(fd, (struct sockaddr *)&own, sizeof(own)));
		close(fd);
	}
	for (int most = 1; most <= 6; most++)
		fair(most);
	for (int most = 1; most <= MANY; most++)
		full(most);
	return 0;
}
