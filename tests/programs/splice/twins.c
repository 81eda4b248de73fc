/* One of two clients that have the same addresses and ports, each in a network namespace of its own: both
 * connect before either sends, so that at one moment there are two connections of each name. Each compares
 * every byte that comes back; they send different ones.
 * twins ADDRESS PORT CONNECTIONS 1|2 DIR: the first connects before the second one does, and sends a byte
 * on each connection before the second one does. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FIRST_PORT = 20000, ROUNDS = 20, LARGEST = 5000, PATIENCE_MS = 10000 };

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(2);
}

static void file(const char *dir, int which, int is_own)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/step%d", dir, which);
	if (is_own) {
		FILE *made = fopen(path, "w");
		must(made != NULL, path);
		fclose(made);
		return;
	}
	while (access(path, F_OK))
		poll(NULL, 0, 1);
}

static void bad(const char *what, int number, int round)
{
	printf("{\"%s\": %d, \"round\": %d}\n", what, number, round);
	exit(1);
}

/* `size` bytes, compared; 0: the other's end. */
static void take(int fd, const unsigned char *expected, size_t size, int number, int round)
{
	unsigned char in[LARGEST];
	size_t got = 0;

	while (got < size || !size) {
		struct pollfd one = {.fd = fd, .events = POLLIN};
		if (poll(&one, 1, PATIENCE_MS) != 1)
			bad("hangs", number, round);
		ssize_t n = recv(fd, in + got, size ? size - got : 1, MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN)
			continue;
		if (n == 0 && !size)
			return;
		if (n <= 0 || !size)
			bad("ended", number, round);
		got += n;
	}
	if (memcmp(in, expected, size))
		bad("other_bytes", number, round);
}

/* A message and its echo. */
static void exchange(int fd, int which, int number, int round, size_t size)
{
	unsigned char out[LARGEST];
	uint32_t word = which * 2654435761u + number * 40503u + round;

	for (size_t n = 0; n < size; n++) {
		word = word * 1664525u + 1013904223u;
		out[n] = word >> 24;
	}
	must(send(fd, out, size, MSG_NOSIGNAL) == (ssize_t)size, "send");
	take(fd, out, size, number, round);
}

int main(int argc, char **argv)
{
	struct sockaddr_in server = {.sin_family = AF_INET}, own = {.sin_family = AF_INET};
	struct rlimit files;
	unsigned long bytes = 0;
	int one = 1;

	must(argc == 6, "twins ADDRESS PORT CONNECTIONS 1|2 DIR");
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	must(inet_pton(AF_INET, argv[1], &server.sin_addr) == 1, "address");
	server.sin_port = htons(atoi(argv[2]));
	int count = atoi(argv[3]), which = atoi(argv[4]);
	int *fds = calloc(count, sizeof(*fds));
	if (which == 2)
		file(argv[5], 1, 0);
	for (int n = 0; n < count; n++) {
		fds[n] = socket(AF_INET, SOCK_STREAM, 0);
		setsockopt(fds[n], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		own.sin_port = htons(FIRST_PORT + n);
		must(bind(fds[n], (void *)&own, sizeof(own)) == 0, "bind");
		must(connect(fds[n], (void *)&server, sizeof(server)) == 0, "connect");
	}
	file(argv[5], which, 1);
	file(argv[5], which == 1 ? 2 : 3, 0);
	for (int n = 0; n < count; n++)
		must(send(fds[n], &"012"[which], 1, MSG_NOSIGNAL) == 1, "send");
	if (which == 1)
		file(argv[5], 3, 1);
	for (int n = 0; n < count; n++, bytes++)
		take(fds[n], (const unsigned char *)&"012"[which], 1, n, -1);
	for (int round = 0; round < ROUNDS; round++)
		for (int n = 0; n < count; n++) {
			size_t size = 1 + (size_t)(n * 31 + round * 797) % LARGEST;
			exchange(fds[n], which, n, round, size);
			bytes += size;
		}
	for (int n = 0; n < count; n++) {
		shutdown(fds[n], SHUT_WR);
		take(fds[n], NULL, 0, n, ROUNDS);
	}
	printf("{\"connections\": %d, \"bytes\": %lu}\n", count, bytes);
	return 0;
}
