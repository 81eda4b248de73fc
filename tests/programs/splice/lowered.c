/* Connections whose ends get buffers of 4 KiB once they are joined (SO_SNDBUF, SO_RCVBUF): says how many bytes one of them
 * takes at most until a send would wait, while nobody reads. */
#define _GNU_SOURCE
#include "joined_pair.h"

enum { CONNECTIONS = 8, LARGE = 1 << 20, SMALL = 4096, MESSAGE = 500 };

static void size(int fd, int option, int bytes)
{
	must(setsockopt(fd, SOL_SOCKET, option, &bytes, sizeof(bytes)) == 0, "setsockopt");
}

int main(void)
{
	static char message[MESSAGE];
	int clients[CONNECTIONS], servers[CONNECTIONS];
	long most = 0;

	for (int n = 0; n < CONNECTIONS; n++) {
		connect_ends(AF_INET, 0, &clients[n], &servers[n]);
		size(clients[n], SO_SNDBUF, LARGE);
		size(servers[n], SO_RCVBUF, LARGE);
	}
	/* How much may be sent before the sizes are looked at again is another number after each message. */
	for (long end = now_ms() + JOIN_MS; now_ms() < end;)
		for (int n = 0; n < CONNECTIONS; n++) {
			moves(clients[n], servers[n]);
			moves(servers[n], clients[n]);
		}
	for (int n = 0; n < CONNECTIONS; n++) {
		long taken = 0;

		for (int k = 0; k < 37 * n; k++) {
			moves(clients[n], servers[n]);
			moves(servers[n], clients[n]);
		}
		size(servers[n], SO_RCVBUF, SMALL);
		size(clients[n], SO_SNDBUF, SMALL);
		while (send(clients[n], message, sizeof(message), 0) > 0)
			taken += sizeof(message);
		most = taken > most ? taken : most;
	}
	printf("{\"most\": %ld}\n", most);
	return 0;
}
