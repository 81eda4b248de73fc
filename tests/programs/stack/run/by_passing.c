/* by_passing: calls by libc, by its number, and by instructions of its own. by_passing ADDRESS STATIC: those, in a child too, and
 * then STATIC, with nothing in its environment. by_passing compat: one of the 32-bit table. by_passing: one socket. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <asm/termbits.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* One instruction, wherever it is called from. */
__attribute__((noinline)) static long own(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
	long answer;

	__asm__ volatile("syscall"
			 : "=a"(answer)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return answer;
}

/* How often each is called is what the test expects. */
static void by_instruction(int fd, int pipe_in, int pipe_out)
{
	struct pollfd polled[3] = {{.fd = -1}, {.fd = pipe_in}, {.fd = fd}};
	struct epoll_event event = {.events = EPOLLIN};
	int epoll = epoll_create1(0), unix_fd, new;
	long byte = 0;

	new = own(SYS_socket, AF_INET, SOCK_STREAM, 0, 0, 0, 0);
	own(SYS_close, new, 0, 0, 0, 0, 0);
	/* Closed by others than close(2). */
	new = own(SYS_socket, AF_INET, SOCK_STREAM, 0, 0, 0, 0);
	own(SYS_close_range, new, new, 0, 0, 0, 0);
	new = own(SYS_socket, AF_INET, SOCK_STREAM, 0, 0, 0, 0);
	own(SYS_dup2, pipe_in, new, 0, 0, 0, 0);
	close(new);
	own(SYS_ioctl, fd, FIONREAD, (long)&byte, 0, 0, 0);
	for (int i = 0; i < 3; i++)
		own(SYS_getsockname, fd, 0, 0, 0, 0, 0);
	own(SYS_poll, (long)polled, 3, 0, 0, 0, 0);
	own(SYS_epoll_ctl, epoll, EPOLL_CTL_ADD, fd, (long)&event, 0, 0);
	own(SYS_splice, pipe_in, 0, fd, 0, 1, 2);
	/* None is of the network, but for isatty's question. */
	own(SYS_ioctl, fd, TCGETS, (long)&byte, 0, 0, 0);
	unix_fd = own(SYS_socket, AF_UNIX, SOCK_STREAM, 0, 0, 0, 0);
	own(SYS_close, unix_fd, 0, 0, 0, 0, 0);
	own(SYS_poll, (long)polled, 2, 0, 0, 0, 0);
	own(SYS_write, pipe_out, (long)&byte, 1, 0, 0, 0);
	own(SYS_read, pipe_in, (long)&byte, 1, 0, 0, 0);
	close(epoll);
}

/* All of them are the hooks'. */
static void by_libc(int fd)
{
	struct sockaddr_in name;
	struct pollfd polled = {.fd = fd};
	socklen_t len = sizeof(name);
	int udp = socket(AF_INET, SOCK_DGRAM, 0), twin = dup(udp);

	for (int i = 0; i < 50; i++) {
		getsockname(fd, (void *)&name, &len);
		syscall(SYS_getsockname, udp, &name, &len);
		poll(&polled, 1, 0);
		send(udp, "", 1, MSG_DONTWAIT);
	}
	close(twin);
	syscall(SYS_close, udp);
}

int main(int count, char **words)
{
	struct sockaddr_in local = {.sin_family = AF_INET};
	int fd, pipes[2];

	if (count == 1)
		return socket(AF_INET, SOCK_STREAM, 0) < 0;
	if (count == 2) {
		long answer;

		/* socket(AF_INET, SOCK_STREAM, 0), close */
		__asm__ volatile("int $0x80" : "=a"(answer) : "a"(359), "b"(2), "c"(1), "d"(0) : "memory");
		__asm__ volatile("int $0x80" : "=a"(answer) : "a"(6), "b"(answer) : "memory");
		return answer < 0;
	}
	inet_pton(AF_INET, words[1], &local.sin_addr);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0 || bind(fd, (void *)&local, sizeof(local)) || pipe(pipes))
		return 1;
	by_libc(fd);
	by_instruction(fd, pipes[0], pipes[1]);
	if (fork() == 0) {
		own(SYS_getsockname, fd, 0, 0, 0, 0, 0);
		return 0;
	}
	if (wait(NULL) < 0)
		return 2;
	if (fork() == 0) {
		execle(words[2], "executed", (char *)NULL, (char *[]){NULL});
		_exit(3);
	}
	if (wait(NULL) < 0)
		return 4;
	/* Whoever watches is nobody's child here. */
	return wait(NULL) > 0 ? 5 : 0;
}
