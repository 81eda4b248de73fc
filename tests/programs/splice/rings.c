/* Zero-copy sends by an io_uring on connections that may be redirected.
 * rings first [READY GO]: the ring is there before the connection, which waits for GO where READY, with the port, is written.
 * rings later: it comes when a connection is redirected, and another
 * connection after it. rings PORT: the other end is an echo server, and the ring comes once connected. Lines of what is answered. */
#define _GNU_SOURCE
#include "both_ends.h"
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SEND_ZC = 47, MORE_FOLLOWS = 2 };

static struct {
	int fd;
	struct io_uring_params is;
	char *queues;
	struct io_uring_sqe *entries;
} ring;

static uint32_t *word(uint32_t offset)
{
	return (uint32_t *)(ring.queues + offset);
}

static void makes_ring(void)
{
	size_t bytes;

	ring.fd = syscall(SYS_io_uring_setup, 8, &ring.is);
	must(ring.fd >= 0 && ring.is.features & IORING_FEAT_SINGLE_MMAP, "io_uring_setup");
	bytes = ring.is.cq_off.cqes + ring.is.cq_entries * sizeof(struct io_uring_cqe);
	ring.queues = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, IORING_OFF_SQ_RING);
	bytes = ring.is.sq_entries * sizeof(struct io_uring_sqe);
	ring.entries = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd, IORING_OFF_SQES);
	must(ring.queues != MAP_FAILED && ring.entries != MAP_FAILED, "mmap");
}

/* The first answer is the send's; where one more follows it tells that the bytes are free again. */
static int sends_without_copy(int fd)
{
	struct io_uring_cqe *answers = (void *)(ring.queues + ring.is.cq_off.cqes);
	uint32_t tail = *word(ring.is.sq_off.tail), at = tail & *word(ring.is.sq_off.ring_mask);
	int result = 0, follows = 1;

	ring.entries[at] = (struct io_uring_sqe){
		.opcode = SEND_ZC, .fd = fd, .addr = (uintptr_t)"zerocopy", .len = 8, .msg_flags = MSG_NOSIGNAL};
	word(ring.is.sq_off.array)[at] = at;
	atomic_store((_Atomic uint32_t *)word(ring.is.sq_off.tail), tail + 1);
	for (int n = 0; follows; n++) {
		uint32_t head = *word(ring.is.cq_off.head);
		struct io_uring_cqe *answer = &answers[head & *word(ring.is.cq_off.ring_mask)];

		must(syscall(SYS_io_uring_enter, ring.fd, n == 0, 1, IORING_ENTER_GETEVENTS, NULL, 0) >= 0, "enter");
		if (n == 0)
			result = answer->res;
		follows = answer->flags & MORE_FOLLOWS;
		atomic_store((_Atomic uint32_t *)word(ring.is.cq_off.head), head + 1);
	}
	return result;
}

static int ends[2];

static void connects(int listener, struct sockaddr_in *name)
{
	ends[0] = socket(AF_INET, SOCK_STREAM, 0);
	must(connect(ends[0], (void *)name, sizeof(*name)) == 0, "connect");
	ends[1] = accept(listener, NULL, NULL);
	must(ends[1] >= 0, "accept");
	may_not_wait(ends[0]);
	may_not_wait(ends[1]);
}

static void alternates(void)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		moves(ends[0], ends[1]);
		moves(ends[1], ends[0]);
		usleep(2000);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < JOIN_MS);
}

/* And of what the other end gets, if anything. */
static void says_of(int from, int to, const char *what)
{
	int result = sends_without_copy(from);

	printf("%s: %s\n", what, result < 0 ? strerrorname_np(-result) : "done");
	if (result > 0)
		gets(what, to);
}

static void says_of_both(const char *what)
{
	for (int n = 0; n < 2; n++) {
		char name[32];

		snprintf(name, sizeof(name), "%s, %s", what, n ? "server" : "client");
		says_of(ends[n], ends[1 - n], name);
	}
}

static void echoes(int port)
{
	struct sockaddr_in name = {
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	must(connect(fd, (void *)&name, sizeof(name)) == 0, "connect");
	makes_ring();
	says_of(fd, fd, "to the echo");
}

static void waits(const char *ready, const char *go, int port)
{
	char temporary[4096], byte;
	FILE *file;
	int fd;

	snprintf(temporary, sizeof(temporary), "%s.new", ready);
	file = fopen(temporary, "w");
	must(file && fprintf(file, "%d\n", port) > 0 && fclose(file) == 0, "ready");
	must(rename(temporary, ready) == 0, "rename");
	fd = open(go, O_RDONLY);
	must(fd >= 0 && read(fd, &byte, 1) == 1, "go");
	close(fd);
}

int main(int argc, char **argv)
{
	struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(name);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	must(argc == 2 || argc == 4, "arguments");
	if (atoi(argv[1])) {
		echoes(atoi(argv[1]));
		return 0;
	}
	must(bind(listener, (void *)&name, length) == 0 && listen(listener, 1) == 0, "listen");
	must(getsockname(listener, (void *)&name, &length) == 0, "getsockname");
	if (strcmp(argv[1], "first") == 0)
		makes_ring();
	if (argc == 4)
		waits(argv[2], argv[3], ntohs(name.sin_port));
	connects(listener, &name);
	alternates();
	if (strcmp(argv[1], "later") == 0) {
		makes_ring();
		alternates();
		connects(listener, &name);
		alternates();
	}
	says_of_both(argv[1]);
	return 0;
}
