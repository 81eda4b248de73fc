/* other_names PEER PORT: an echo server is asked by calls of libc that have other names, and what they return is said, a line each. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

int __connect(int, const struct sockaddr *, socklen_t);
int __select(int, fd_set *, fd_set *, fd_set *, struct timeval *);

static char bytes[8];

static void say(const char *what, long result)
{
	printf("%s: %ld %s %.5s\n", what, result, result < 0 ? strerrorname_np(errno) : "", bytes);
	memset(bytes, 0, sizeof(bytes));
}

static void waits(int fd)
{
	fd_set set;
	struct timeval span = {.tv_sec = 60};

	FD_ZERO(&set);
	FD_SET(fd, &set);
	say("select", __select(fd + 1, &set, NULL, NULL, &span));
}

int main(int argc, char **argv)
{
	struct sockaddr_in peer = {.sin_family = AF_INET};
	char hello[] = "hello";
	struct iovec from[2] = {{hello, 2}, {hello + 2, 3}}, into[2] = {{bytes, 1}, {bytes + 1, 7}};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (argc != 3)
		return 2;
	inet_pton(AF_INET, argv[1], &peer.sin_addr);
	peer.sin_port = htons(atoi(argv[2]));
	say("connect", __connect(fd, (struct sockaddr *)&peer, sizeof(peer)));
	say("nothing there", preadv2(fd, into, 2, -1, RWF_NOWAIT));
	say("at an offset", preadv2(fd, into, 2, 0, 0));
	say("no flag of a read", preadv2(fd, into, 2, -1, RWF_APPEND << 8));
	say("write", pwritev2(fd, from, 2, -1, 0));
	waits(fd);
	say("read", preadv2(fd, into, 2, -1, 0));
	say("write at once", pwritev2(fd, from, 2, -1, RWF_NOWAIT));
	waits(fd);
	say("read at once", preadv64v2(fd, into, 2, -1, RWF_NOWAIT));
	say("write as of files", pwritev64v2(fd, from, 2, -1, RWF_DSYNC));
	waits(fd);
	say("read as of files", preadv2(fd, into, 2, -1, RWF_HIPRI));
	say("write at an offset", pwritev2(fd, from, 2, 0, 0));
	say("shutdown", shutdown(fd, SHUT_WR));
	waits(fd);
	say("the end", preadv2(fd, into, 2, -1, 0));
	return 0;
}
