/* sleeps CASE [PORT]: a connection whose client clears O_NONBLOCK once it is joined, and from then on always sleeps in recv.
 *   signals: what its receives say that handlers end, once there is a line on stdin, from the first that says EINTR, as by
 *     TCP. There are redirected bytes unread when it clears the flag.
 *   shut: shuts its writing down, all read, and receives once there is a line on stdin.
 *   stuck: a send to the server waits for its lock meanwhile, whose holder stopped in a page fault (userfaultfd). */
#define _GNU_SOURCE
#include "held_page.h"
#include "joined_pair.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

enum { UNREAD = 100, SIGNALS = 60, APART_MS = 5, HARM_MS = 1000 };

static int client, server;
static char room[1000];

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
	pthread_t holder, sender, receiver;
	ssize_t got = 0;

	hold_page();
	pthread_create(&holder, NULL, sends_page, NULL);
	poll(NULL, 0, 300);
	pthread_create(&sender, NULL, sends_second, NULL);
	poll(NULL, 0, 300);
	may_wait(client);
	pthread_create(&receiver, NULL, receives, &got);
	/* Time to do harm. */
	poll(NULL, 0, HARM_MS);
	let_go_on();
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
	connect_ends(AF_INET, argc > 2 ? atoi(argv[2]) : 0, &client, &server);
	exchange(client, server);
	if (!strcmp(argv[1], "signals"))
		signals();
	else if (!strcmp(argv[1], "shut"))
		shut();
	else
		stuck();
	return 0;
}
