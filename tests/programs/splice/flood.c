/* Connections to an echo server whose client does not read: each sends until nothing more is taken, so that
 * the server cannot go on either. Every second connection sends one byte only, and gets it back.
 * flood PORT CONNECTIONS: then all is read, every byte compared, each end awaited.
 * flood PORT CONNECTIONS READY_FILE: then nothing is read; what counts is how the server ends them.
 * Says one line of JSON: bytes sent and come back, connections ended by FIN and by RST; 1 when a byte is wrong. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* Nothing moved at all for so long: what is open hangs. */
enum { PIECE = 64 << 10, PATIENCE_MS = 20000, ENOUGH = 256 << 20 };

static unsigned char piece[PIECE];
static unsigned long sent, back, ended, reset;

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(2);
}

static unsigned char byte_at(uint64_t at)
{
	return (at / 4 * 2654435761u) >> (8 * (at % 4));
}

static int connected(const struct sockaddr_in *to)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	must(fd >= 0 && connect(fd, (const struct sockaddr *)to, sizeof(*to)) == 0, "connect");
	return fd;
}

static short wait_for(int fd, short events, int patience_ms)
{
	struct pollfd one = {.fd = fd, .events = events};

	return poll(&one, 1, patience_ms) == 1 ? one.revents : 0;
}

/* Until nothing was taken for a while: what lies in queues may still be on its way through the server. */
static uint64_t fill(int fd)
{
	uint64_t at = 0;

	while (at < ENOUGH && wait_for(fd, POLLOUT, 500)) {
		for (int i = 0; i < PIECE; i++)
			piece[i] = byte_at(at + i);
		ssize_t n = send(fd, piece, PIECE, MSG_DONTWAIT | MSG_NOSIGNAL);

		must(n > 0 || errno == EAGAIN, "send");
		at += n > 0 ? n : 0;
	}
	must(at < ENOUGH, "the server takes without end");
	return at;
}

/* `all` bytes and the end, each compared. */
static void read_back(int fd, uint64_t all)
{
	uint64_t at = 0;

	must(shutdown(fd, SHUT_WR) == 0, "shutdown");
	for (;;) {
		errno = ETIMEDOUT;
		must(wait_for(fd, POLLIN, PATIENCE_MS), "nothing comes back");
		ssize_t n = recv(fd, piece, PIECE, 0);

		must(n >= 0, "recv");
		for (ssize_t i = 0; i < n; i++)
			if (piece[i] != byte_at(at + i)) {
				fprintf(stderr, "byte %llu is another\n", (unsigned long long)at + i);
				exit(1);
			}
		at += n;
		if (n == 0)
			break;
	}
	if (at != all) {
		fprintf(stderr, "%llu of %llu bytes came back\n", (unsigned long long)at, (unsigned long long)all);
		exit(1);
	}
	back += at;
	ended++;
}

static void await_end(int fd)
{
	errno = ETIMEDOUT;
	short seen = wait_for(fd, POLLRDHUP, PATIENCE_MS);

	must(seen != 0, "a connection goes on");
	if (seen & POLLERR)
		reset++;
	else
		ended++;
}

int main(int count, char **words)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	must(count >= 3, "flood PORT CONNECTIONS [READY_FILE]");
	to.sin_port = htons(atoi(words[1]));
	int connections = atoi(words[2]);
	int *fds = calloc(connections, sizeof(*fds));
	uint64_t *sizes = calloc(connections, sizeof(*sizes));

	must(fds != NULL && sizes != NULL, "calloc");
	for (int i = 0; i < connections; i++) {
		fds[i] = connected(&to);
		if (i % 2 == 0) {
			sizes[i] = fill(fds[i]);
		} else {
			unsigned char one = byte_at(0), same;

			must(send(fds[i], &one, 1, 0) == 1 && recv(fds[i], &same, 1, MSG_PEEK) == 1, "one byte");
			sizes[i] = 1;
		}
		sent += sizes[i];
	}
	if (count > 3) {
		int ready = open(words[3], O_CREAT | O_WRONLY, 0644);

		must(ready >= 0, words[3]);
	}
	for (int i = 0; i < connections; i++)
		count > 3 ? await_end(fds[i]) : read_back(fds[i], sizes[i]);
	printf("{\"sent\":%lu,\"back\":%lu,\"ended\":%lu,\"reset\":%lu}\n", sent, back, ended, reset);
	return 0;
}
