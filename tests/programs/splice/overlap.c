/* A client of an echo that sends part of what has arrived again, in one packet with bytes that have not, as a
 * retransmission may. The socket is put together anew with an older position of its own (TCP_REPAIR, tcp(7)).
 *
 *   overlap PORT   0: every byte came back once
 */
#include <arpa/inet.h>
#include <linux/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FIRST 20000
#define AGAIN 9000
#define SECOND 20000

static unsigned char sent[FIRST + SECOND], got[FIRST + SECOND + 1];

static void fail(const char *what)
{
	perror(what);
	exit(2);
}

static void set(int fd, int option, int value)
{
	if (setsockopt(fd, IPPROTO_TCP, option, &value, sizeof(value)))
		fail("setsockopt");
}

static unsigned position(int fd, int queue)
{
	unsigned value;
	socklen_t size = sizeof(value);

	set(fd, TCP_REPAIR_QUEUE, queue);
	if (getsockopt(fd, IPPROTO_TCP, TCP_QUEUE_SEQ, &value, &size))
		fail("TCP_QUEUE_SEQ");
	return value;
}

static void receive(int fd, size_t from, size_t to)
{
	while (from < to) {
		ssize_t n = recv(fd, got + from, to - from, 0);

		if (n <= 0)
			fail("recv");
		from += n;
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, own;
	struct timeval patience = {.tv_sec = 20};
	socklen_t size = sizeof(own);
	struct tcp_repair_window window;
	struct tcp_repair_opt scales = {.opt_code = 3};
	struct tcp_info info;
	unsigned out, in;
	int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
	ssize_t more;

	to.sin_port = htons(argc > 1 ? atoi(argv[1]) : 0);
	for (size_t n = 0; n < sizeof(sent); n++)
		sent[n] = n * 131 + (n >> 8);
	if (connect(fd, (void *)&to, sizeof(to)) || getsockname(fd, (void *)&own, &size))
		fail("connect");
	if (send(fd, sent, FIRST, 0) != FIRST)
		fail("send");
	receive(fd, 0, FIRST);
	/* The echo has been acknowledged when it has been read, and what was sent came back. */
	set(fd, TCP_REPAIR, 1);
	out = position(fd, TCP_SEND_QUEUE);
	in = position(fd, TCP_RECV_QUEUE);
	size = sizeof(window);
	if (getsockopt(fd, IPPROTO_TCP, TCP_REPAIR_WINDOW, &window, &size))
		fail("TCP_REPAIR_WINDOW");
	size = sizeof(info);
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size))
		fail("TCP_INFO");
	close(fd);

	fd = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	set(fd, TCP_REPAIR, 1);
	if (bind(fd, (void *)&own, sizeof(own)))
		fail("bind");
	set(fd, TCP_REPAIR_QUEUE, TCP_SEND_QUEUE);
	set(fd, TCP_QUEUE_SEQ, out - AGAIN);
	set(fd, TCP_REPAIR_QUEUE, TCP_RECV_QUEUE);
	set(fd, TCP_QUEUE_SEQ, in);
	/* One packet is to hold all of it. */
	set(fd, TCP_MAXSEG, 32000);
	if (connect(fd, (void *)&to, sizeof(to)))
		fail("connect again");
	/* Option 3 of RFC 7323. */
	scales.opt_val = info.tcpi_snd_wscale | info.tcpi_rcv_wscale << 16;
	if (setsockopt(fd, IPPROTO_TCP, TCP_REPAIR_OPTIONS, &scales, sizeof(scales)))
		fail("TCP_REPAIR_OPTIONS");
	if (setsockopt(fd, IPPROTO_TCP, TCP_REPAIR_WINDOW, &window, sizeof(window)))
		fail("set TCP_REPAIR_WINDOW");
	set(fd, TCP_REPAIR, 0);
	if (send(fd, sent + FIRST - AGAIN, AGAIN + SECOND, 0) != AGAIN + SECOND)
		fail("send again");
	receive(fd, FIRST, FIRST + SECOND);
	more = recv(fd, got + FIRST + SECOND, 1, MSG_DONTWAIT);
	if (more > 0 || memcmp(got, sent, FIRST + SECOND)) {
		fprintf(stderr, "bytes came twice, or others\n");
		return 1;
	}
	return 0;
}
