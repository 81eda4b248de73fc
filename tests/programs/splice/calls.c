/* One connection whose ends use other calls than send and recv, or end early; by name of the case. Says
 * how many bytes went from one end to the other and were read. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static int from, to;
static char bytes[70000], room[70000];

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(2);
}

static void connected(void)
{
	struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(name);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	must(bind(listener, (void *)&name, length) == 0, "bind");
	must(listen(listener, 1) == 0, "listen");
	must(getsockname(listener, (void *)&name, &length) == 0, "getsockname");
	from = socket(AF_INET, SOCK_STREAM, 0);
	must(connect(from, (void *)&name, length) == 0, "connect");
	to = accept(listener, NULL, NULL);
	must(to >= 0, "accept");
	close(listener);
}

static long take(long most)
{
	long got = 0;

	while (got < most) {
		long n = recv(to, room, most - got < (long)sizeof(room) ? most - got : (long)sizeof(room), 0);
		must(n > 0, "recv");
		got += n;
	}
	return got;
}

/* All calls that are followed, with pieces of odd sizes, empty ones among them. */
static long pieces(void)
{
	struct iovec out[4] = {{bytes, 1}, {bytes + 1, 0}, {bytes + 1, 4097}, {bytes + 4098, 13}};
	struct iovec in[3] = {{room, 3}, {room + 3, 4093}, {room + 4096, 9000}};
	struct msghdr message = {.msg_iov = out, .msg_iovlen = 4}, got = {.msg_iov = in, .msg_iovlen = 3};
	long sum = 0;

	for (int n = 0; n < 50; n++) {
		must(writev(from, out, 4) == 4111, "writev");
		must(sendmsg(from, &message, 0) == 4111, "sendmsg");
		must(pwritev2(from, out, 4, -1, 0) == 4111, "pwritev2");
		must(write(from, bytes, 777) == 777, "write");
		long left = 3 * 4111 + 777, one;
		while (left > 0) {
			/* Never more than there is: the last call would wait. */
			if (left > 13096 || n % 3 == 0)
				one = read(to, room, left < 5 ? left : 5);
			else if (n % 3 == 1)
				one = recvmsg(to, &got, 0);
			else
				one = readv(to, in, 3);
			must(one > 0, "reading");
			left -= one;
			sum += one;
		}
	}
	return sum;
}

static long peek(void)
{
	must(send(from, bytes, 9000, 0) == 9000, "send");
	for (int n = 0; n < 3; n++)
		must(recv(to, room, 5000, MSG_PEEK) > 0, "peeking");
	return take(9000);
}

static long from_file(void)
{
	int file = memfd_create("bytes", 0);
	off_t at = 0;

	must(write(file, bytes, sizeof(bytes)) == sizeof(bytes), "writing");
	must(sendfile(from, file, &at, sizeof(bytes)) == sizeof(bytes), "sendfile");
	return take(sizeof(bytes));
}

static long from_pipe(void)
{
	int ends[2];

	must(pipe(ends) == 0, "pipe");
	must(write(ends[1], bytes, 5000) == 5000, "writing");
	must(splice(ends[0], NULL, from, NULL, 5000, 0) == 5000, "splice");
	return take(5000);
}

static long several_messages(void)
{
	struct iovec out = {bytes, 1000};
	struct mmsghdr messages[2] = {{.msg_hdr = {.msg_iov = &out, .msg_iovlen = 1}},
				      {.msg_hdr = {.msg_iov = &out, .msg_iovlen = 1}}};

	must(sendmmsg(from, messages, 2, 0) == 2, "sendmmsg");
	return take(2000);
}

static long unread(void)
{
	must(send(from, bytes, 5000, 0) == 5000, "send");
	return take(100);
}

static void *one_byte(void *tid)
{
	long got;

	__atomic_store_n((long *)tid, gettid(), __ATOMIC_RELEASE);
	/* On joined sockets a recv that waits may say that there is nothing. */
	do
		got = recv(to, room, 1, 0);
	while (got < 0);
	return NULL;
}

/* Until both threads are in recv: /proc/PID/task/TID/syscall begins with its number (proc(5)). */
static void await_recv(long *tid)
{
	char path[64], line[8] = "";
	long id;

	while (!(id = __atomic_load_n(tid, __ATOMIC_ACQUIRE)))
		;
	snprintf(path, sizeof(path), "/proc/self/task/%ld/syscall", id);
	while (strncmp(line, "45 ", 3)) {
		FILE *file = fopen(path, "r");
		if (!file || !fgets(line, sizeof(line), file))
			line[0] = 0;
		if (file)
			fclose(file);
	}
}

static long together(void)
{
	pthread_t thread[2];
	long tid[2] = {0, 0};

	for (int n = 0; n < 2; n++)
		pthread_create(&thread[n], NULL, one_byte, &tid[n]);
	for (int n = 0; n < 2; n++)
		await_recv(&tid[n]);
	must(send(from, bytes, 2, 0) == 2, "send");
	for (int n = 0; n < 2; n++)
		pthread_join(thread[n], NULL);
	return 2;
}

enum { LARGE = 257 << 20 };

static void *take_large(void *none)
{
	long left = LARGE;

	while (left > 0) {
		long n = recv(to, room, sizeof(room), 0);
		left -= n > 0 ? n : 0;
	}
	return none;
}

/* More in one call than is looked at. */
static long large(void)
{
	char *zeros = mmap(NULL, LARGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t thread;

	must(zeros != MAP_FAILED, "mmap");
	pthread_create(&thread, NULL, take_large, NULL);
	must(send(from, zeros, LARGE, 0) == LARGE, "send");
	pthread_join(thread, NULL);
	return LARGE;
}

/* Until the end. */
static long to_the_end(void)
{
	long sum = 0, got;

	for (int n = 0; n < 5; n++)
		must(send(from, bytes, 5000, 0) == 5000, "send");
	must(shutdown(from, SHUT_WR) == 0, "shutdown");
	while ((got = recv(to, room, sizeof(room), 0)) > 0)
		sum += got;
	must(got == 0, "recv");
	return sum;
}

static const struct {
	const char *name;
	long (*run)(void);
} CASES[] = {
	{"pieces", pieces}, {"peek", peek},		{"sendfile", from_file}, {"splice", from_pipe},
	{"large", large},   {"sendmmsg", several_messages}, {"unread", unread},	{"together", together},
	{"end", to_the_end},
};

int main(int argc, char **argv)
{
	for (size_t n = 0; n < sizeof(bytes); n++)
		bytes[n] = n * 197 + n / 251;
	for (size_t n = 0; argc == 2 && n < sizeof(CASES) / sizeof(*CASES); n++) {
		if (strcmp(argv[1], CASES[n].name))
			continue;
		connected();
		printf("{\"bytes\": %ld}\n", CASES[n].run());
		return 0;
	}
	fprintf(stderr, "calls CASE\n");
	return 2;
}
