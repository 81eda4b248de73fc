/* many CONNECTIONS: a writer sends 1 MiB on each of so many connections, as far as they take it; the reader, another
 * process, begins to read after a second. Says how many sends failed with anything but EAGAIN, and how many bytes
 * were received. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 64, EACH = 1 << 20, PIECE = 16384, PATIENCE_MS = 20000 };

static char bytes[1 << 16];

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(2);
}

static int connected(struct sockaddr_in *name)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	must(connect(fd, (void *)name, sizeof(*name)) == 0, "connect");
	return fd;
}

/* Until all are at their end. */
static unsigned long reads(struct sockaddr_in *name, int count)
{
	struct pollfd all[MOST];
	unsigned long received = 0;
	int open = count;

	for (int n = 0; n < count; n++)
		all[n] = (struct pollfd){.fd = connected(name), .events = POLLIN};
	poll(NULL, 0, 1000);
	while (open) {
		must(poll(all, count, PATIENCE_MS) > 0, "poll");
		for (int n = 0; n < count; n++) {
			if (!all[n].revents)
				continue;
			ssize_t got = recv(all[n].fd, bytes, sizeof(bytes), MSG_DONTWAIT);
			if (got < 0 && errno == EAGAIN)
				continue;
			if (got <= 0) {
				all[n].fd = -1;
				open--;
				continue;
			}
			received += got;
		}
	}
	return received;
}

static int sends(int listener, int count)
{
	struct pollfd all[MOST];
	int left[MOST], open = count, failed = 0;

	for (int n = 0; n < count; n++) {
		all[n] = (struct pollfd){.fd = accept(listener, NULL, NULL), .events = POLLOUT};
		left[n] = EACH;
	}
	while (open) {
		must(poll(all, count, PATIENCE_MS) > 0, "poll");
		for (int n = 0; n < count; n++) {
			if (!all[n].revents)
				continue;
			ssize_t sent = send(all[n].fd, bytes, left[n] < PIECE ? left[n] : PIECE,
					    MSG_DONTWAIT | MSG_NOSIGNAL);
			if (sent < 0 && errno == EAGAIN)
				continue;
			failed += sent < 0;
			left[n] -= sent < 0 ? left[n] : sent;
			if (left[n])
				continue;
			shutdown(all[n].fd, SHUT_WR);
			all[n].fd = -1;
			open--;
		}
	}
	return failed;
}

int main(int argc, char **argv)
{
	struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(name);
	int listener = socket(AF_INET, SOCK_STREAM, 0), count = argc > 1 ? atoi(argv[1]) : 0, said[2];
	unsigned long received;

	must(count > 0 && count <= MOST, "many CONNECTIONS");
	must(bind(listener, (void *)&name, length) == 0, "bind");
	must(listen(listener, MOST) == 0, "listen");
	must(getsockname(listener, (void *)&name, &length) == 0, "getsockname");
	must(pipe(said) == 0, "pipe");
	if (fork() == 0) {
		close(listener);
		received = reads(&name, count);
		must(write(said[1], &received, sizeof(received)) == sizeof(received), "write");
		_exit(0);
	}
	close(said[1]);
	int failed = sends(listener, count);
	must(read(said[0], &received, sizeof(received)) == sizeof(received), "the reader");
	printf("{\"failed\": %d, \"received\": %lu}\n", failed, received);
	wait(NULL);
	return 0;
}
