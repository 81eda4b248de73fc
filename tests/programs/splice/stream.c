/* Both ends of a connection in one process, from 127.0.0.1 to itself: one direction carries numbered
 * words, in pieces of many sizes.
 * stream bursts TOTAL: the reader only reads when the writer cannot go on, and then a part of what is
 *   there: each time it begins anew, bytes that went two ways lie in front of it.
 * stream unread: nothing is read; how much is taken until the writer cannot go on.
 * stream hold: sends 100,000 bytes and says so; reads them for a line on its stdin, and says so; for
 *   another line sends and reads as many again.
 * Says one line of JSON; 1 when a byte is wrong. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PIECE = 96 << 10, ENOUGH = 512 << 20, PATIENCE_MS = 10000 };

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(2);
}

/* The byte at a position of the stream. */
static unsigned char byte_at(uint64_t at)
{
	uint32_t word = (uint32_t)(at / 4) * 2654435761u;

	return word >> (8 * (at % 4));
}

static void connected(int *from, int *to)
{
	struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(name);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	must(bind(listener, (void *)&name, length) == 0, "bind");
	must(listen(listener, 1) == 0, "listen");
	must(getsockname(listener, (void *)&name, &length) == 0, "getsockname");
	*from = socket(AF_INET, SOCK_STREAM, 0);
	must(connect(*from, (void *)&name, length) == 0, "connect");
	*to = accept(listener, NULL, NULL);
	must(*to >= 0, "accept");
	close(listener);
}

/* As much as is taken, in pieces that differ; the new position. */
static uint64_t fill(int fd, uint64_t at, uint64_t total)
{
	static unsigned char piece[PIECE];

	while (at < total) {
		size_t size = 1 + (at * 31 + 7) % PIECE;
		if (size > total - at)
			size = total - at;
		for (size_t n = 0; n < size; n++)
			piece[n] = byte_at(at + n);
		ssize_t sent = send(fd, piece, size, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent < 0 && errno == EAGAIN)
			return at;
		must(sent > 0, "send");
		at += sent;
	}
	return at;
}

/* At most `most` bytes, compared; the new position. */
static uint64_t take(int fd, uint64_t at, uint64_t most)
{
	static unsigned char piece[PIECE];

	while (most > 0) {
		ssize_t got = recv(fd, piece, most < PIECE ? most : PIECE, MSG_DONTWAIT);
		if (got < 0 && errno == EAGAIN)
			return at;
		must(got > 0, "recv");
		for (ssize_t n = 0; n < got; n++) {
			if (piece[n] == byte_at(at + n))
				continue;
			printf("{\"wrong_at\": %lu}\n", (unsigned long)(at + n));
			exit(1);
		}
		at += got;
		most -= got;
	}
	return at;
}

static void await(int fd, short events, const char *what)
{
	struct pollfd one = {.fd = fd, .events = events};

	if (poll(&one, 1, PATIENCE_MS) == 1)
		return;
	printf("{\"hangs\": \"%s\"}\n", what);
	exit(1);
}

int main(int argc, char **argv)
{
	uint64_t written = 0, read_up_to = 0, rounds = 0;
	int from, to;

	must(argc > 1, "stream bursts TOTAL | unread | hold");
	connected(&from, &to);
	if (strcmp(argv[1], "unread") == 0) {
		written = fill(from, 0, ENOUGH);
		printf("{\"unread\": %lu}\n", (unsigned long)written);
		return 0;
	}
	if (strcmp(argv[1], "hold") == 0) {
		char byte;
		written = fill(from, 0, 100000);
		printf("{\"written\": %lu}\n", (unsigned long)written);
		fflush(stdout);
		must(read(0, &byte, 1) == 1, "stdin");
		read_up_to = take(to, 0, written);
		printf("{\"read\": %lu}\n", (unsigned long)read_up_to);
		fflush(stdout);
		must(read(0, &byte, 1) == 1, "stdin");
		written = 200000;
	}
	uint64_t total = argc > 2 ? strtoull(argv[2], NULL, 10) : written;
	written = read_up_to;
	while (read_up_to < total) {
		uint64_t before = written;
		written = fill(from, written, total);
		if (read_up_to == written)
			await(from, POLLOUT, "writer");
		else
			await(to, POLLIN, "reader");
		/* Sometimes all of it, so that nothing is left of either way. */
		uint64_t part = rounds % 4 == 3 ? UINT64_MAX : (rounds * 77773) % (3 << 20) + 1;
		read_up_to = take(to, read_up_to, part);
		rounds += written != before;
	}
	printf("{\"bytes\": %lu, \"rounds\": %lu}\n", (unsigned long)read_up_to, (unsigned long)rounds);
	return 0;
}
