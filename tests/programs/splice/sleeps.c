/* sleeps CASE [PORT]: a connection whose client clears O_NONBLOCK once it is joined, and from then on always sleeps in recv.
 *   signals: what its receives say that handlers end, once there is a line on stdin, from the first that says EINTR, as by
 *     TCP. There are redirected bytes unread when it clears the flag.
 *   shut: shuts its writing down, all read, and receives once there is a line on stdin.
 *   stuck: a send to the server waits for its lock meanwhile, whose holder stopped in a page fault (userfaultfd). */
#define _GNU_SOURCE
#include "both_ends.h"
#include <linux/userfaultfd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { UNREAD = 100, SIGNALS = 60, APART_MS = 5, HARM_MS = 1000 };

static int client, server;
static char room[1000];

static void connected(uint16_t port)
{
	struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
	socklen_t length = sizeof(name);
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	must(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0, "reuse");
	must(bind(listener, (void *)&name, length) == 0 && listen(listener, 1) == 0, "listen");
	must(getsockname(listener, (void *)&name, &length) == 0, "getsockname");
	client = socket(AF_INET, SOCK_STREAM, 0);
	must(connect(client, (void *)&name, length) == 0, "connect");
	server = accept(listener, NULL, NULL);
	must(server >= 0, "accept");
	may_not_wait(client);
	may_not_wait(server);
}

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void exchange(void)
{
	for (long end = now_ms() + JOIN_MS; now_ms() < end;) {
		moves(client, server);
		moves(server, client);
	}
}

static void may_wait(int fd)
{
	must(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK) == 0, "fcntl");
}

static void on_signal(int signal)
{
	(void)signal;
}

static pthread_t sleeper;
static atomic_int is_over;

static void *signals_it(void *none)
{
	char line;

	must(read(0, &line, 1) == 1, "stdin");
	while (!is_over) {
		poll(NULL, 0, APART_MS);
		pthread_kill(sleeper, SIGUSR1);
	}
	return none;
}

static int next_error(void)
{
	must(recv(client, room, sizeof(room), 0) < 0, "recv");
	return errno;
}

static void signals(void)
{
	struct sigaction action = {.sa_handler = on_signal};
	long end = now_ms() + PATIENCE_MS;
	int before = 0, others = 0;
	pthread_t other;

	sigaction(SIGUSR1, &action, NULL);
	sleeper = pthread_self();
	must(send(server, room, UNREAD, 0) == UNREAD, "send");
	may_wait(client);
	must(recv(client, room, sizeof(room), 0) == UNREAD, "recv");
	pthread_create(&other, NULL, signals_it, NULL);
	printf("sleeps\n");
	fflush(stdout);
	while (next_error() != EINTR && now_ms() < end)
		before++;
	for (int n = 0; n < SIGNALS; n++)
		others += next_error() != EINTR;
	is_over = 1;
	pthread_join(other, NULL);
	must(send(server, "answer", 6, 0) == 6, "send");
	ssize_t got = recv(client, room, sizeof(room), 0);
	printf("{\"before\": %d, \"others\": %d, \"received\": %zd}\n", before, others, got);
}

static void shut(void)
{
	char line;

	must(shutdown(client, SHUT_WR) == 0, "shutdown");
	wait_for(server, POLLRDHUP);
	printf("sleeps\n");
	fflush(stdout);
	must(read(0, &line, 1) == 1, "stdin");
	must(send(server, "answer", 6, 0) == 6, "send");
	wait_for(client, POLLIN);
	printf("{\"received\": %zd}\n", recv(client, room, sizeof(room), 0));
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

static void *receives(void *got)
{
	*(ssize_t *)got = recv(client, room, sizeof(room), 0);
	return NULL;
}

static void stuck(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register all = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	struct uffdio_zeropage zero = {0};
	pthread_t holder, sender, receiver;
	int faults = syscall(SYS_userfaultfd, O_CLOEXEC);
	ssize_t got = 0;

	must(ioctl(faults, UFFDIO_API, &api) == 0, "userfaultfd");
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	all.range.start = zero.range.start = (uintptr_t)page;
	all.range.len = zero.range.len = 4096;
	must(ioctl(faults, UFFDIO_REGISTER, &all) == 0, "UFFDIO_REGISTER");
	pthread_create(&holder, NULL, sends_page, NULL);
	poll(NULL, 0, 300);
	pthread_create(&sender, NULL, sends_second, NULL);
	poll(NULL, 0, 300);
	may_wait(client);
	pthread_create(&receiver, NULL, receives, &got);
	/* Time to do harm. */
	poll(NULL, 0, HARM_MS);
	must(ioctl(faults, UFFDIO_ZEROPAGE, &zero) == 0, "UFFDIO_ZEROPAGE");
	pthread_join(holder, NULL);
	pthread_join(sender, NULL);
	pthread_join(receiver, NULL);
	wait_for(server, POLLIN);
	printf("{\"client\": %zd, \"server\": %zd}\n", got, recv(server, room, sizeof(room), 0));
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	connected(argc > 2 ? atoi(argv[2]) : 0);
	exchange();
	if (!strcmp(argv[1], "signals"))
		signals();
	else if (!strcmp(argv[1], "shut"))
		shut();
	else
		stuck();
	return 0;
}
