/* Both ends of a connection, and what their calls say. Says one line of JSON.
 * ends exchange MS [UID]: questions and answers for so long, without waiting in a receive; the client's process
 *   changes to UID first.
 * ends wait handler|stop|reset|shut: a receive that waits, while something else than bytes happens.
 * ends turn: as exchange; then the client may wait, and has a signal while it does.
 * ends lowat: as exchange; then the client sets SO_RCVLOWAT, and fewer bytes come.
 * ends waitall: MSG_WAITALL, more bytes than fit unread.
 * ends one-way MIB: as exchange; then so much in one direction.
 * ends late LIBRARY: as exchange; then LIBRARY is loaded; the same on another connection.
 * ends stuck PORT: a send faults while it holds its socket, and a send to it waits for that; for a line on stdin the
 *   fault is over. Says whether both messages arrived. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MESSAGE = 100, PATIENCE_MS = 10000, JOIN_MS = 600 };

static int client, server;

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(2);
}

static void rest(int ms)
{
	poll(NULL, 0, ms);
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000ull + now.tv_nsec / 1000000;
}

static int listening(struct sockaddr_in *name, int port)
{
	socklen_t length = sizeof(*name);
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	*name = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port),
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	must(bind(listener, (void *)name, length) == 0, "bind");
	must(listen(listener, 8) == 0, "listen");
	must(getsockname(listener, (void *)name, &length) == 0, "getsockname");
	return listener;
}

static void connected(int port)
{
	struct sockaddr_in name;
	int listener = listening(&name, port);

	client = socket(AF_INET, SOCK_STREAM, 0);
	must(connect(client, (void *)&name, sizeof(name)) == 0, "connect");
	server = accept(listener, NULL, NULL);
	must(server >= 0, "accept");
	close(listener);
}

static void set_waits(int fd, int waits)
{
	int flags = fcntl(fd, F_GETFL);

	fcntl(fd, F_SETFL, waits ? flags & ~O_NONBLOCK : flags | O_NONBLOCK);
}

static void take(int fd, size_t size)
{
	char bytes[1 << 16];

	while (size) {
		ssize_t got = recv(fd, bytes, size < sizeof(bytes) ? size : sizeof(bytes), 0);
		if (got < 0 && errno == EAGAIN) {
			struct pollfd one = {.fd = fd, .events = POLLIN};
			must(poll(&one, 1, PATIENCE_MS) == 1, "poll");
			continue;
		}
		must(got > 0, "recv");
		size -= got;
	}
}

/* Questions and answers in one thread. */
static uint64_t exchange(int ms)
{
	char bytes[MESSAGE] = {0};
	uint64_t end = now_ms() + ms, rounds = 0;

	set_waits(client, 0);
	set_waits(server, 0);
	for (; now_ms() < end; rounds++) {
		must(send(client, bytes, sizeof(bytes), 0) == MESSAGE, "send");
		take(server, MESSAGE);
		must(send(server, bytes, sizeof(bytes), 0) == MESSAGE, "send");
		take(client, MESSAGE);
	}
	return rounds;
}

/* The same with a process for the client, of another user. */
static uint64_t exchange_as(int ms, int uid)
{
	struct sockaddr_in name;
	int listener = listening(&name, 0), status;
	char bytes[MESSAGE] = {0};
	uint64_t end = now_ms() + ms, rounds = 0;
	pid_t child = fork();

	if (child == 0) {
		must(setuid(uid) == 0, "setuid");
		client = socket(AF_INET, SOCK_STREAM, 0);
		must(connect(client, (void *)&name, sizeof(name)) == 0, "connect");
		set_waits(client, 0);
		for (; now_ms() < end; rounds++) {
			must(send(client, bytes, sizeof(bytes), 0) == MESSAGE, "send");
			take(client, MESSAGE);
		}
		_exit(0);
	}
	server = accept(listener, NULL, NULL);
	set_waits(server, 0);
	for (;; rounds++) {
		struct pollfd one = {.fd = server, .events = POLLIN};
		must(poll(&one, 1, PATIENCE_MS) == 1, "poll");
		ssize_t got = recv(server, bytes, 1, MSG_PEEK);
		if (got == 0)
			break;
		must(got == 1, "recv");
		take(server, MESSAGE);
		must(send(server, bytes, sizeof(bytes), 0) == MESSAGE, "send");
	}
	must(waitpid(child, &status, 0) == child && status == 0, "the client");
	return rounds;
}

static void on_signal(int signal)
{
	(void)signal;
}

static const char *what_happens;
static pid_t waits;

/* What is done to the one that waits: afterwards it is sent something. */
static void *happens(void *thread)
{
	struct linger reset = {.l_onoff = 1};

	rest(300);
	if (strcmp(what_happens, "handler") == 0)
		pthread_kill(*(pthread_t *)thread, SIGUSR1);
	if (strcmp(what_happens, "shut") == 0)
		shutdown(client, SHUT_RD);
	if (strcmp(what_happens, "reset") == 0) {
		setsockopt(server, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
		close(server);
	} else {
		rest(200);
		must(send(server, "answer", 6, MSG_NOSIGNAL) == 6, "send");
	}
	return NULL;
}

static void waits_for(const char *what)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
	pthread_t own = pthread_self(), other;
	char bytes[MESSAGE];
	pid_t stopper = 0;

	what_happens = what;
	sigaction(SIGUSR1, &action, NULL);
	if (strcmp(what, "stop") == 0) {
		waits = getpid();
		stopper = fork();
		if (stopper == 0) {
			rest(150);
			kill(waits, SIGSTOP);
			rest(100);
			kill(waits, SIGCONT);
			_exit(0);
		}
	}
	pthread_create(&other, NULL, happens, &own);
	ssize_t got = recv(client, bytes, sizeof(bytes), 0);
	printf("{\"received\": %zd, \"error\": \"%s\"}\n", got, got < 0 ? strerrorname_np(errno) : "");
	pthread_join(other, NULL);
	if (stopper)
		waitpid(stopper, NULL, 0);
}

static int can_read(int fd, int ms)
{
	struct pollfd one = {.fd = fd, .events = POLLIN};

	return poll(&one, 1, ms) == 1;
}

static void lowat(void)
{
	int least = 10;

	exchange(JOIN_MS);
	must(setsockopt(client, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof(least)) == 0, "SO_RCVLOWAT");
	must(send(server, "abc", 3, 0) == 3, "send");
	int early = can_read(client, 200);
	must(send(server, "defghijkl", 9, 0) == 9, "send");
	int then = can_read(client, 2000);
	rest(200);
	printf("{\"early\": %d, \"then\": %d}\n", early, then);
}

enum { WAITALL_BYTES = 1500000 };

static void *sends_much(void *none)
{
	static char bytes[10000];

	for (int sent = 0; sent < WAITALL_BYTES; sent += sizeof(bytes))
		must(send(client, bytes, sizeof(bytes), 0) == sizeof(bytes), "send");
	rest(1000);
	must(send(client, "0123456789", 10, 0) == 10, "send");
	return none;
}

static void waitall(void)
{
	static char all[WAITALL_BYTES + 10];
	size_t have = 0;
	pthread_t other;

	pthread_create(&other, NULL, sends_much, NULL);
	rest(300);
	alarm(PATIENCE_MS / 1000);
	while (have < sizeof(all)) {
		ssize_t got = recv(server, all + have, sizeof(all) - have, MSG_WAITALL);
		must(got > 0, "recv");
		have += got;
	}
	printf("{\"bytes\": %zu}\n", have);
}

static uint64_t one_way_bytes;

static void *takes_all(void *none)
{
	take(server, one_way_bytes);
	return none;
}

static void one_way(uint64_t mib)
{
	static char bytes[1 << 16];
	pthread_t other;

	exchange(JOIN_MS);
	one_way_bytes = mib << 20;
	pthread_create(&other, NULL, takes_all, NULL);
	for (uint64_t left = one_way_bytes; left;) {
		ssize_t sent = send(client, bytes, left < sizeof(bytes) ? left : sizeof(bytes), 0);
		if (sent < 0 && errno == EAGAIN) {
			struct pollfd one = {.fd = client, .events = POLLOUT};
			must(poll(&one, 1, PATIENCE_MS) == 1, "poll");
			continue;
		}
		must(sent > 0, "send");
		left -= sent;
	}
	pthread_join(other, NULL);
	printf("{\"bytes\": %lu, \"rounds\": %lu}\n", one_way_bytes, exchange(300));
}

static void late(const char *library)
{
	uint64_t rounds = exchange(JOIN_MS);

	must(dlopen(library, RTLD_NOW) != NULL, library);
	rest(JOIN_MS);
	rounds += exchange(JOIN_MS);
	connected(0);
	printf("{\"rounds\": %lu}\n", rounds + exchange(JOIN_MS));
}

static char *page;

static void *sends_page(void *none)
{
	must(send(server, page, 3, 0) == 3, "send");
	return none;
}

static void *sends_second(void *none)
{
	must(send(client, "two", 3, 0) == 3, "send");
	return none;
}

static void stuck(int port)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register all = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	struct uffdio_zeropage zero = {0};
	pthread_t holder, sender;
	char byte, bytes[MESSAGE];
	int faults = syscall(SYS_userfaultfd, O_CLOEXEC);

	must(ioctl(faults, UFFDIO_API, &api) == 0, "userfaultfd");
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	all.range.start = zero.range.start = (uintptr_t)page;
	all.range.len = zero.range.len = 4096;
	must(ioctl(faults, UFFDIO_REGISTER, &all) == 0, "UFFDIO_REGISTER");
	connected(port);
	must(send(client, "first", 5, 0) == 5, "send");
	take(server, 5);
	must(send(server, "first", 5, 0) == 5, "send");
	take(client, 5);
	pthread_create(&holder, NULL, sends_page, NULL);
	rest(300);
	pthread_create(&sender, NULL, sends_second, NULL);
	rest(300);
	printf("{\"stuck\": true}\n");
	fflush(stdout);
	must(read(0, &byte, 1) == 1, "stdin");
	must(ioctl(faults, UFFDIO_ZEROPAGE, &zero) == 0, "UFFDIO_ZEROPAGE");
	pthread_join(holder, NULL);
	pthread_join(sender, NULL);
	int arrived = can_read(server, 2000) && recv(server, bytes, sizeof(bytes), 0) == 3;
	arrived += can_read(client, 2000) && recv(client, bytes, sizeof(bytes), 0) == 3;
	printf("{\"arrived\": %d}\n", arrived);
}

int main(int argc, char **argv)
{
	must(argc > 1, "ends MODE ...");
	if (strcmp(argv[1], "stuck") == 0 && argc > 2) {
		stuck(atoi(argv[2]));
		return 0;
	}
	if (strcmp(argv[1], "exchange") == 0 && argc > 3) {
		printf("{\"rounds\": %lu}\n", exchange_as(atoi(argv[2]), atoi(argv[3])));
		return 0;
	}
	connected(0);
	if (strcmp(argv[1], "exchange") == 0 && argc > 2)
		printf("{\"rounds\": %lu}\n", exchange(atoi(argv[2])));
	else if (strcmp(argv[1], "wait") == 0 && argc > 2)
		waits_for(argv[2]);
	else if (strcmp(argv[1], "late") == 0 && argc > 2)
		late(argv[2]);
	else if (strcmp(argv[1], "lowat") == 0)
		lowat();
	else if (strcmp(argv[1], "waitall") == 0)
		waitall();
	else if (strcmp(argv[1], "one-way") == 0 && argc > 2)
		one_way(strtoull(argv[2], NULL, 10));
	else if (strcmp(argv[1], "turn") == 0) {
		exchange(JOIN_MS);
		set_waits(client, 1);
		rest(JOIN_MS);
		waits_for("handler");
	} else
		must(0, "no such mode");
	return 0;
}
