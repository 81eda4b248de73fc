/* reused PEER PORT: connections that are closed past libc's close, and what comes under their numbers next. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

static struct sockaddr_in peer = {.sin_family = AF_INET};

static int connected(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&peer, sizeof(peer))) {
		perror("connect");
		exit(1);
	}
	return fd;
}

/* An instruction of the program's own: no library sees it. */
static void unseen(int fd)
{
	long result;

	__asm__ volatile("syscall" : "=a"(result) : "0"((long)SYS_close), "D"((long)fd) : "rcx", "r11", "memory");
}

/* A file has what is written to it. */
static void file(const char *how, int fd, int before)
{
	char bytes[16] = "";
	ssize_t put = write(fd, "secret", 6);
	ssize_t got = pread(fd, bytes, sizeof(bytes), 0);

	printf("%s: %s number, %zd %zd %s\n", how, fd == before ? "the same" : "another", put, got, bytes);
	lseek(fd, 0, SEEK_SET);
	printf("%s: read %zd\n", how, read(fd, bytes, sizeof(bytes)));
	close(fd);
}

static int passed(int fd)
{
	char space[CMSG_SPACE(sizeof(int))], byte = 0;
	struct iovec part = {&byte, 1};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space)};
	struct cmsghdr *control = CMSG_FIRSTHDR(&message);
	static int pair[2];

	if (!pair[1] && socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		exit(2);
	if (fd >= 0) {
		control->cmsg_level = SOL_SOCKET;
		control->cmsg_type = SCM_RIGHTS;
		control->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(control), &fd, sizeof(int));
		return sendmsg(pair[0], &message, 0);
	}
	if (recvmsg(pair[1], &message, 0) != 1)
		exit(3);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
	return fd;
}

int main(int argc, char **argv)
{
	int fd, other, memory = memfd_create("memory", 0);
	struct epoll_event event = {.events = EPOLLOUT};
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	struct sockaddr_in own[2];
	socklen_t len = sizeof(own[0]);

	if (argc != 3)
		return 2;
	setvbuf(stdout, NULL, _IONBF, 0);
	inet_pton(AF_INET, argv[1], &peer.sin_addr);
	peer.sin_port = htons(atoi(argv[2]));

	fd = connected();
	syscall(SYS_close, fd);
	file("by number", memfd_create("file", 0), fd);
	fd = connected();
	syscall(SYS_close_range, fd, fd, 0);
	file("a range by number", memfd_create("file", 0), fd);
	fd = connected();
	syscall(SYS_dup2, memory, fd);
	file("another one in its place", fd, fd);
	fd = connected();
	fclose(fdopen(fd, "r+"));
	file("a stream", memfd_create("file", 0), fd);

	fd = connected();
	unseen(fd);
	ftruncate(memory, 0);
	lseek(memory, 0, SEEK_SET);
	file("dup", dup(memory), fd);
	fd = connected();
	unseen(fd);
	other = socket(AF_UNIX, SOCK_STREAM, 0);
	printf("socket: %s number, bind %d\n", fd == other ? "the same" : "another", bind(other, (struct sockaddr *)&name, sizeof(sa_family_t)));
	close(other);
	fd = connected();
	unseen(fd);
	other = epoll_create1(0);
	printf("epoll: %s number, %d", fd == other ? "the same" : "another", epoll_ctl(other, EPOLL_CTL_ADD, 1, &event));
	printf(" %d\n", epoll_wait(other, &event, 1, 0) >= -1);
	close(other);
	fd = connected();
	unseen(fd);
	other = connected();
	printf("connection: %s number, %zd\n", fd == other ? "the same" : "another", send(other, "", 0, 0));
	close(other);

	/* A descriptor that comes, under the number of a connection. */
	other = connected();
	getsockname(other, (struct sockaddr *)&own[0], &len);
	passed(other);
	close(other);
	fd = connected();
	unseen(fd);
	other = passed(-1);
	printf("passed: %s number, %d", fd == other ? "the same" : "another", getsockname(other, (struct sockaddr *)&own[1], &len));
	printf(" port %s\n", own[0].sin_port == own[1].sin_port ? "as before" : "of the other one");
	return 0;
}
