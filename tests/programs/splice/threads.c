/* A server of which one thread waits for its client's only byte while another sends it more than it reads at
 * once; and that client.
 *
 *   threads serve BYTES       prints its port; then, for each line that it reads, what became of one connection
 *   threads read PORT BYTES   reads them, and says so with one byte
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static char buffer[64 << 10];
static int connection;
static _Atomic int waiter;
static unsigned long again;

static void *wait_for_byte(void *unused)
{
	char byte;
	ssize_t got;

	waiter = gettid();
	while ((got = recv(connection, &byte, 1, 0)) < 0 && errno == EAGAIN)
		again++;
	return got == 1 ? unused : "no byte";
}

static int is_asleep(int tid)
{
	char path[64], line[512] = "";
	FILE *stat;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	stat = fopen(path, "r");
	if (stat) {
		if (!fgets(line, sizeof(line), stat))
			line[0] = 0;
		fclose(stat);
	}
	return strstr(line, ") S ") != NULL;
}

static int serve(size_t bytes)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	if (bind(listener, (void *)&at, size) || listen(listener, 8) ||
	    getsockname(listener, (void *)&at, &size))
		return 3;
	printf("%d\n", ntohs(at.sin_port));
	fflush(stdout);
	while (fgets(buffer, sizeof(buffer), stdin)) {
		pthread_t thread;
		void *failed;
		size_t sent = 0;

		again = waiter = 0;
		connection = accept(listener, NULL, NULL);
		if (connection < 0 || pthread_create(&thread, NULL, wait_for_byte, NULL))
			return 3;
		while (!waiter || !is_asleep(waiter))
			;
		while (sent < bytes) {
			size_t left = bytes - sent;
			ssize_t took = send(connection, buffer,
					    left < sizeof(buffer) ? left : sizeof(buffer), 0);

			if (took < 0)
				return 4;
			sent += took;
		}
		pthread_join(thread, &failed);
		if (failed)
			return 5;
		close(connection);
		printf("{\"again\": %lu, \"sent\": %zu}\n", again, sent);
		fflush(stdout);
	}
	return 0;
}

static int read_all(int port, size_t bytes)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons(port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int server = socket(AF_INET, SOCK_STREAM, 0);

	if (connect(server, (void *)&to, sizeof(to)))
		return 3;
	while (bytes) {
		/* In small pieces: the sender has to wait. */
		ssize_t got = recv(server, buffer, bytes < 2048 ? bytes : 2048, 0);

		if (got <= 0)
			return 4;
		bytes -= got;
	}
	return send(server, "x", 1, 0) != 1;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "serve"))
		return serve(strtoul(argv[2], NULL, 10));
	if (argc == 4 && !strcmp(argv[1], "read"))
		return read_all(atoi(argv[2]), strtoul(argv[3], NULL, 10));
	return 2;
}
