/* A signal's handler leaves calls that wait by siglongjmp(3): 20 times each, and then its sockets work as before. The signal is sent when
 * the thread sleeps in a system call that is no futex.
 * jumped ADDRESS PORT: of a server that sends back what it is sent. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { TIMES = 20 };

static sigjmp_buf back;
static pthread_t waiter;
static atomic_int wanted;
static char path[64];
static struct sockaddr_in server;

static void must(int is, const char *what)
{
	if (is)
		return;
	perror(what);
	exit(1);
}

static void leave(int signal)
{
	(void)signal;
	siglongjmp(back, 1);
}

/* A handler's own jumps leave nothing. */
static void stay(int signal)
{
	jmp_buf own;

	(void)signal;
	if (setjmp(own) == 0)
		longjmp(own, 1);
}

static int sleeps(void)
{
	char text[64];
	FILE *file = fopen(path, "r");
	int has = file && fgets(text, sizeof(text), file);

	if (file)
		fclose(file);
	return has && text[0] >= '0' && text[0] <= '9' && atoi(text) != SYS_futex;
}

static void *sends(void *nothing)
{
	(void)nothing;
	for (;;) {
		int signal = atomic_load(&wanted);

		if (signal == 0 || !sleeps()) {
			sched_yield();
			continue;
		}
		atomic_store(&wanted, 0);
		pthread_kill(waiter, signal);
	}
	return NULL;
}

static int connected(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	must(connect(fd, (void *)&server, sizeof(server)) == 0, "connect");
	return fd;
}

static void echoes(int fd)
{
	char bytes[8];

	must(send(fd, "echo", 4, 0) == 4, "send");
	must(recv(fd, bytes, 4, MSG_WAITALL) == 4 && memcmp(bytes, "echo", 4) == 0, "recv");
}

static int descriptors(void)
{
	int count = 0;
	DIR *all = opendir("/proc/self/fd");

	while (readdir(all))
		count++;
	closedir(all);
	return count;
}

static int stream, listener, set;

static void by_recv(void)
{
	char byte;

	recv(stream, &byte, 1, 0);
}

static void by_read(void)
{
	char byte;

	read(stream, &byte, 1);
}

static void by_recvmsg(void)
{
	char byte;
	struct iovec part = {&byte, 1};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	recvmsg(stream, &message, 0);
}

static void by_poll(void)
{
	struct pollfd one = {stream, POLLIN, 0};

	poll(&one, 1, -1);
}

static void by_select(void)
{
	fd_set read;

	FD_ZERO(&read);
	FD_SET(stream, &read);
	select(stream + 1, &read, NULL, NULL, NULL);
}

static void by_epoll(void)
{
	struct epoll_event event;

	epoll_wait(set, &event, 1, -1);
}

static void by_accept(void)
{
	accept(listener, NULL, NULL);
}

static const struct {
	const char *name;
	void (*waits)(void);
} CALLS[] = {
	{"recv", by_recv}, {"read", by_read}, {"recvmsg", by_recvmsg}, {"poll", by_poll},
	{"select", by_select}, {"epoll_wait", by_epoll}, {"accept", by_accept},
};

static void jumps(int call)
{
	volatile int times = 0;

	while (times < TIMES)
		if (sigsetjmp(back, 1) == 0) {
			atomic_store(&wanted, SIGUSR1);
			CALLS[call].waits();
			must(0, "left otherwise");
		} else {
			times++;
		}
}

int main(int argc, char **argv)
{
	struct sockaddr_in any = {.sin_family = AF_INET};
	struct epoll_event event = {.events = EPOLLIN};
	pthread_t sender;
	int before = 0;

	must(argc == 3, "two arguments");
	/* Where a call hears of nothing, the thread that sends spins. */
	alarm(120);
	snprintf(path, sizeof(path), "/proc/self/task/%ld/syscall", syscall(SYS_gettid));
	server = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(atoi(argv[2]))};
	must(inet_pton(AF_INET, argv[1], &server.sin_addr) == 1, "an address");
	waiter = pthread_self();
	signal(SIGUSR1, leave);
	signal(SIGUSR2, stay);
	siginterrupt(SIGUSR2, 1);
	must(pthread_create(&sender, NULL, sends, NULL) == 0, "a thread");
	stream = connected();
	listener = socket(AF_INET, SOCK_STREAM, 0);
	must(bind(listener, (void *)&any, sizeof(any)) == 0 && listen(listener, 1) == 0, "listen");
	set = epoll_create1(0);
	must(epoll_ctl(set, EPOLL_CTL_ADD, stream, &event) == 0, "epoll_ctl");
	for (int round = 0; round < 2; round++)
		for (int call = 0; call < (int)(sizeof(CALLS) / sizeof(CALLS[0])); call++) {
			jumps(call);
			echoes(stream);
			int other = connected();
			echoes(other);
			close(other);
			printf("%s: left %d times\n", CALLS[call].name, TIMES);
			/* Doorbells are made once. */
			if (round == 0)
				before = descriptors();
		}
	printf("descriptors more: %d\n", descriptors() - before);
	atomic_store(&wanted, SIGUSR2);
	by_poll();
	echoes(stream);
	puts("a handler that stays");
	return 0;
}
