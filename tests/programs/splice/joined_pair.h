/* A connection of a program with itself, and the time that it takes to be joined. */
#pragma once
#include "both_ends.h"
#include <linux/tcp.h>
#include <netinet/in.h>
#include <time.h>

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Over loopback, AF_INET or AF_INET6; port 0: any. */
static void connect_ends(int family, int port, int *client, int *server)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT, .sin6_port = htons(port)};
	struct sockaddr *name = family == AF_INET ? (void *)&v4 : (void *)&v6;
	socklen_t length = family == AF_INET ? sizeof(v4) : sizeof(v6);
	int listener = socket(family, SOCK_STREAM, 0), one = 1;

	must(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0, "reuse");
	must(bind(listener, name, length) == 0 && listen(listener, 1) == 0, "listen");
	must(getsockname(listener, name, &length) == 0, "getsockname");
	*client = socket(family, SOCK_STREAM, 0);
	must(connect(*client, name, length) == 0, "connect");
	*server = accept(listener, NULL, NULL);
	must(*server >= 0, "accept");
	must(setsockopt(*client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) == 0, "nodelay");
	must(setsockopt(*server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) == 0, "nodelay");
	may_not_wait(*client);
	may_not_wait(*server);
}

/* Until the connection may be joined. */
static inline void exchange(int one, int other)
{
	for (long end = now_ms() + JOIN_MS; now_ms() < end;) {
		moves(one, other);
		moves(other, one);
	}
}
