#include <errno.h>
#include <poll.h>
#include <stdio.h>

#include "traffic.h"

/* Nothing for so long after the last packet was sent: what is missing now is lost. */
#define QUIET_MS 300

static void take_all(struct traffic_run *run, enum traffic_port port)
{
	struct packet_view views[FRAME_PACKETS_MAX];
	uint32_t count;
	while ((count = packet_socket_receive(&run->sockets[port], views, FRAME_PACKETS_MAX)) > 0) {
		for (uint32_t i = 0; i < count; i++)
			traffic_check_packet(&run->check, port, views[i].data, views[i].length);
		packet_socket_release(&run->sockets[port]);
	}
	packet_socket_release(&run->sockets[port]);
}

void *traffic_receive(void *argument)
{
	struct traffic_run *run = argument;
	struct pollfd fds[TRAFFIC_PORTS];
	bool gone = false;

	for (uint32_t port = 0; port < run->port_count; port++)
		fds[port] = (struct pollfd){ .fd = run->sockets[port].fd, .events = POLLIN };
	for (;;) {
		bool done = atomic_load(&run->sender_done);
		int ready = poll(fds, run->port_count, QUIET_MS);
		if ((ready == 0 && done) || (ready < 0 && errno != EINTR))
			break;
		for (uint32_t port = 0; port < run->port_count; port++) {
			take_all(run, port);
			if (fds[port].revents & (POLLERR | POLLHUP | POLLNVAL))
				gone = true;
		}
		if (gone) {
			fprintf(stderr, "hopscope-demo-traffic: an interface went away\n");
			break;
		}
	}
	stop_request(&run->stop);
	return NULL;
}
