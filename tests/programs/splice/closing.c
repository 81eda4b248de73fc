/* An end is closed while its peer sends. A peer whose bytes were not all read has to be told of a reset, by a send or by
 * recv; one whose bytes were all read, of an orderly end.
 * closing ROUNDS: one line of JSON. */
#define _GNU_SOURCE
#include "both_ends.h"
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

enum { SENDERS = 2, SIZE_MAX_SENT = 32768, SENDS_MAX = 200 };

/* Of a round. */
static struct {
	int sender, closer, senders, size, is_file;
	/* One message, that is read before the close. */
	int is_last_word;
	/* All threads to one processor. */
	int is_pinned;
} now;

static sem_t begun[SENDERS], ended;
static pthread_t threads[SENDERS];
static atomic_int is_closed;
static atomic_int is_locked;
static atomic_long confirmed;
static atomic_int errors;
static char bytes[SIZE_MAX_SENT];
static int file;

static ssize_t sends(void)
{
	off_t from = 0;

	if (now.is_file)
		return sendfile(now.sender, file, &from, now.size);
	return send(now.sender, bytes, now.size, MSG_NOSIGNAL);
}

static void sends_until_closed(void)
{
	while (!is_locked)
		sched_yield();
	for (int n = 0; n < SENDS_MAX && !is_closed; n++) {
		ssize_t sent = sends();

		if (sent > 0)
			confirmed += sent;
		else if (sent < 0 && errno != EAGAIN)
			errors++;
		if (now.is_last_word || (sent < 0 && errno != EAGAIN))
			return;
	}
}

/* Whoever sends has to wait for the socket behind its message, too. */
static void locks_until_closed(void)
{
	int one = 1;

	is_locked = 1;
	while (!is_closed)
		setsockopt(now.sender, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static void *sender(void *number)
{
	for (;;) {
		sem_wait(&begun[(long)number]);
		if (now.is_last_word && number)
			locks_until_closed();
		else
			sends_until_closed();
		sem_post(&ended);
	}
	return NULL;
}

static void pins(void)
{
	static cpu_set_t all;
	cpu_set_t one;

	if (!CPU_COUNT(&all))
		must(sched_getaffinity(0, sizeof(all), &all) == 0, "sched_getaffinity");
	CPU_ZERO(&one);
	for (int n = 0; n < CPU_SETSIZE && !CPU_COUNT(&one); n++)
		if (CPU_ISSET(n, &all))
			CPU_SET(n, &one);
	must(sched_setaffinity(0, sizeof(one), now.is_pinned ? &one : &all) == 0, "sched_setaffinity");
	for (int n = 0; n < SENDERS; n++)
		pthread_setaffinity_np(threads[n], sizeof(one), now.is_pinned ? &one : &all);
}

static long reads(int fd)
{
	static char into[SIZE_MAX_SENT];
	ssize_t got = recv(fd, into, sizeof(into), 0);

	return got < 0 ? 0 : got;
}

/* What it has read when it closes its end. */
static long closes(void)
{
	long got = 0;
	/* Nothing is in its queue most of the time: what it does not find comes too late. */
	int least = now.is_last_word ? now.size : 1 + rand() % (4 * now.size);

	while (got < least) {
		/* The last word is read while its sender is still in its call. */
		if (!now.is_last_word || now.is_pinned)
			wait_for(now.closer, POLLIN);
		got += reads(now.closer);
	}
	close(now.closer);
	is_closed = 1;
	return got;
}

/* Of what was sent behind the FIN: recv returns 0, and the reset is EPIPE (tcp_reset, net/ipv4/tcp_input.c). */
static int has_error(int fd)
{
	struct pollfd one = {.fd = fd, .events = POLLERR};

	return poll(&one, 1, PATIENCE_MS) == 1;
}

static void connects(int listener, struct sockaddr_in *name)
{
	now.sender = socket(AF_INET, SOCK_STREAM, 0);
	must(connect(now.sender, (void *)name, sizeof(*name)) == 0, "connect");
	now.closer = accept(listener, NULL, NULL);
	must(now.closer >= 0, "accept");
	may_not_wait(now.sender);
	may_not_wait(now.closer);
	moves(now.sender, now.closer);
	moves(now.closer, now.sender);
	moves(now.sender, now.closer);
}

int main(int argc, char **argv)
{
	struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(name);
	int listener = socket(AF_INET, SOCK_STREAM, 0), rounds = argc == 2 ? atoi(argv[1]) : 0;
	long unread = 0, all_read = 0, not_told = 0, told_wrongly = 0;

	must(bind(listener, (void *)&name, length) == 0 && listen(listener, 1) == 0, "listen");
	must(getsockname(listener, (void *)&name, &length) == 0, "getsockname");
	file = memfd_create("bytes", 0);
	must(file >= 0 && write(file, bytes, sizeof(bytes)) == sizeof(bytes), "memfd");
	sem_init(&ended, 0, 0);
	for (long n = 0; n < SENDERS; n++) {
		sem_init(&begun[n], 0, 0);
		must(pthread_create(&threads[n], NULL, sender, (void *)n) == 0, "pthread_create");
	}
	for (int round = 1; round <= rounds && !not_told; round++) {
		long got;
		ssize_t end;

		connects(listener, &name);
		now.is_last_word = round % 2 == 0;
		now.senders = 1 + rand() % SENDERS;
		/* Elsewhere its errors are lost behind the bytes that went before. */
		now.is_file = now.is_last_word && round % 3 == 0;
		now.size = 1 + rand() % (rand() % 2 ? 256 : SIZE_MAX_SENT);
		now.is_pinned = round % 8 == 0;
		pins();
		confirmed = errors = is_closed = 0;
		is_locked = !now.is_last_word || now.senders == 1;
		for (int n = 0; n < now.senders; n++)
			sem_post(&begun[n]);
		got = closes();
		for (int n = 0; n < now.senders; n++)
			sem_wait(&ended);
		wait_for(now.sender, POLLRDHUP);
		end = recv(now.sender, bytes, 1, 0);
		if (confirmed > got) {
			unread++;
			not_told += end == 0 && !errors && !has_error(now.sender);
		} else {
			all_read++;
			told_wrongly += end != 0 && !errors;
		}
		close(now.sender);
	}
	printf("{\"unread\": %ld, \"all_read\": %ld, \"not_told\": %ld, \"told_wrongly\": %ld}\n", unread, all_read,
	       not_told, told_wrongly);
	return 0;
}
