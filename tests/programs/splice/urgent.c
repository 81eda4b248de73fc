/* urgent [owned]: an urgent byte (MSG_OOB) comes while three bytes before it are unread; says what a receive with MSG_OOB
 * gets, and then the stream. owned: signals tell of events at both ends (F_SETOWN). */
#define _GNU_SOURCE
#include "joined_pair.h"
#include <signal.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char urgent = 0, stream[10] = {0};
	int ends[2], have = 0;

	signal(SIGURG, SIG_IGN);
	connect_ends(AF_INET, 0, &ends[0], &ends[1]);
	for (int n = 0; n < 2 && argc == 2 && !strcmp(argv[1], "owned"); n++)
		must(fcntl(ends[n], F_SETOWN, getpid()) == 0, "F_SETOWN");
	exchange(ends[0], ends[1]);
	must(send(ends[0], "abc", 3, 0) == 3, "send");
	must(send(ends[0], "U", 1, MSG_OOB) == 1, "send");
	wait_for(ends[1], POLLPRI);
	must(recv(ends[1], &urgent, 1, MSG_OOB) == 1, "recv");
	printf("%c\n", urgent);
	must(shutdown(ends[0], SHUT_WR) == 0, "shutdown");
	for (;;) {
		ssize_t got;

		wait_for(ends[1], POLLIN);
		got = recv(ends[1], stream + have, sizeof(stream) - 1 - have, 0);
		if (got <= 0)
			break;
		have += got;
	}
	printf("%s\n", stream);
	return 0;
}
