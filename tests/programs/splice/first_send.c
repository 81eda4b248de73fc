/* An end sends once while its peer closes, having read everything before: TCP takes these bytes whether or not the FIN was there
 * first, and answers with a reset later. Until TIMES closes began while the other end was in its send.
 * first_send TIMES: one line of JSON. */
#define _GNU_SOURCE
#include "both_ends.h"
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

enum { SIZE_MAX_SENT = 4096, SPIN_MAX = 4000, ROUNDS_MAX = 1000 };

static atomic_int round_now, ready, sending, done;
static int closer, spin, is_during;

static void spins(int times)
{
	for (volatile int n = 0; n < times; n++)
		;
}

/* On a processor each, so that both run at the same time. */
static void stays_on(int nth)
{
	cpu_set_t all, one;

	must(sched_getaffinity(0, sizeof(all), &all) == 0, "sched_getaffinity");
	must(CPU_COUNT(&all) > 1, "one processor");
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all) && nth-- == 0)
			CPU_SET(cpu, &one);
	must(sched_setaffinity(0, sizeof(one), &one) == 0, "sched_setaffinity");
}

static void *closes(void *unused)
{
	stays_on(1);
	for (int seen = 0;;) {
		while (round_now == seen)
			sched_yield();
		seen = round_now;
		if (seen < 0)
			return NULL;
		ready = 1;
		while (!sending)
			;
		spins(spin);
		is_during = sending == round_now;
		close(closer);
		done = 1;
	}
}

static int connects(int listener, struct sockaddr_in *name)
{
	int sender = socket(AF_INET, SOCK_STREAM, 0);

	must(connect(sender, (void *)name, sizeof(*name)) == 0, "connect");
	closer = accept(listener, NULL, NULL);
	must(closer >= 0, "accept");
	may_not_wait(sender);
	may_not_wait(closer);
	moves(sender, closer);
	moves(closer, sender);
	moves(sender, closer);
	return sender;
}

int main(int argc, char **argv)
{
	struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int listener = socket(AF_INET, SOCK_STREAM, 0), times = argc == 2 ? atoi(argv[1]) : 0;
	int file = memfd_create("bytes", 0);
	static char bytes[SIZE_MAX_SENT];
	socklen_t length = sizeof(name);
	long refused = 0, reset = 0, during = 0;
	int round = 0;
	pthread_t thread;

	must(bind(listener, (void *)&name, length) == 0 && listen(listener, 1) == 0, "listen");
	must(getsockname(listener, (void *)&name, &length) == 0, "getsockname");
	must(file >= 0 && write(file, bytes, sizeof(bytes)) == sizeof(bytes), "memfd");
	must(pthread_create(&thread, NULL, closes, NULL) == 0, "pthread_create");
	stays_on(0);
	while (during < times && round < times * ROUNDS_MAX) {
		int sender = connects(listener, &name), size = 1 + rand() % SIZE_MAX_SENT;
		struct pollfd one = {.fd = sender, .events = POLLRDHUP};
		off_t from = 0;
		ssize_t sent;

		spin = rand() % SPIN_MAX;
		ready = sending = done = 0;
		round_now = ++round;
		/* Who gives its processor away here never meets the other in the close. */
		while (!ready)
			;
		sending = round;
		if (round % 3)
			sent = send(sender, bytes, size, MSG_NOSIGNAL);
		else
			sent = sendfile(sender, file, &from, size);
		sending = -1;
		refused += sent != size;
		while (!done)
			sched_yield();
		must(poll(&one, 1, PATIENCE_MS) == 1, "poll");
		one.events = 0;
		must(poll(&one, 1, PATIENCE_MS) == 1, "poll");
		reset += (one.revents & POLLERR) != 0;
		during += is_during;
		close(sender);
	}
	round_now = -1;
	pthread_join(thread, NULL);
	printf("{\"rounds\": %d, \"during\": %ld, \"refused\": %ld, \"reset\": %ld}\n", round, during, refused, reset);
	return 0;
}
