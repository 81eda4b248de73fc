/* rounds ADDRESS PORT CONNECTIONS ROUNDS: echoes what so many connections have sent, each time once epoll tells of all of them at
 * once, byte by byte. Computes for a while first, and never sleeps. Ends after so many rounds, when the connections are closed. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 64, COMPUTES_MS = 20 };

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
	struct sockaddr_in own = {.sin_family = AF_INET};
	struct epoll_event events[MOST];
	int connections, rounds, listener, set;
	char byte;

	must(argc == 5, "rounds ADDRESS PORT CONNECTIONS ROUNDS");
	inet_pton(AF_INET, argv[1], &own.sin_addr);
	own.sin_port = htons(atoi(argv[2]));
	connections = atoi(argv[3]);
	rounds = atoi(argv[4]);
	must(connections <= MOST, "CONNECTIONS");
	listener = socket(AF_INET, SOCK_STREAM, 0);
	must(bind(listener, (struct sockaddr *)&own, sizeof(own)) == 0 && listen(listener, MOST) == 0, "listen");
	must((set = epoll_create1(0)) >= 0, "epoll_create1");
	fclose(fopen(getenv("READY_FILE"), "w"));
	for (int n = 0; n < connections; n++) {
		struct epoll_event in = {.events = EPOLLIN, .data.fd = accept(listener, NULL, NULL)};

		must(in.data.fd >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, in.data.fd, &in) == 0, "accept");
	}
	for (long until = now_ms() + COMPUTES_MS; now_ms() < until;)
		;
	for (int round = 0; round < rounds; round++) {
		while (epoll_wait(set, events, MOST, 0) < connections)
			;
		for (int n = 0; n < connections; n++) {
			must(read(events[n].data.fd, &byte, 1) == 1, "read");
			must(write(events[n].data.fd, &byte, 1) == 1, "write");
		}
	}
	while (epoll_wait(set, events, MOST, -1) < connections)
		;
	for (int n = 0; n < connections; n++)
		must(read(events[n].data.fd, &byte, 1) == 0, "end");
	return 0;
}
