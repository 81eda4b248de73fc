/* Packets from and to network interfaces: each worker has a socket on every port, and the
 * kernel spreads the flows of a port over the workers' sockets. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "io.h"
#include "packet_socket.h"

struct packet_queue {
	struct io_queue base;
	struct budget *budget;
	int stop_fd;
	uint32_t port_count;
	uint32_t port;            /* asked next, in turn */
	bool out_of_budget;
	bool poll;
	struct packet_view outgoing[FRAME_PACKETS_MAX];
	struct packet_socket sockets[PORTS_MAX];
};

static uint32_t packet_receive(struct io_queue *base, struct frame *frame, uint32_t burst)
{
	struct packet_queue *queue = (struct packet_queue *)base;
	struct packet_view views[FRAME_PACKETS_MAX];
	uint64_t first;
	uint32_t granted = budget_claim(queue->budget, burst, &first);
	uint32_t count = 0;

	queue->out_of_budget = granted == 0;
	for (uint32_t tried = 0; granted && count == 0 && tried < queue->port_count; tried++) {
		uint32_t port = queue->port;
		struct packet_socket *socket = &queue->sockets[port];
		queue->port = (port + 1) % queue->port_count;
		count = packet_socket_receive(socket, views, granted);
		if (count == 0)
			packet_socket_release(socket);
		for (uint32_t i = 0; i < count; i++) {
			frame->packets[i].data = views[i].data;
			frame->packets[i].length = views[i].length;
			frame->packets[i].in_port = (uint8_t)port;
		}
	}
	budget_return(queue->budget, granted - count);
	return count;
}

static uint32_t packet_send(struct io_queue *base, uint32_t port, const struct frame *frame, bool *taken)
{
	struct packet_queue *queue = (struct packet_queue *)base;
	bool sent[FRAME_PACKETS_MAX];
	uint32_t count = frame->tx_count[port];

	for (uint32_t i = 0; i < count; i++) {
		const struct packet *packet = &frame->packets[frame->tx[port][i]];
		queue->outgoing[i] = (struct packet_view){ .data = packet->data, .length = packet->length };
	}
	uint32_t refused = packet_socket_send(&queue->sockets[port], queue->outgoing, count, sent);
	for (uint32_t i = 0; i < count; i++)
		taken[frame->tx[port][i]] |= sent[i];
	return refused;
}

static void packet_release(struct io_queue *base, const struct frame *frame)
{
	struct packet_queue *queue = (struct packet_queue *)base;
	packet_socket_release(&queue->sockets[frame->packets[0].in_port]);
}

static enum io_wait packet_wait(struct io_queue *base)
{
	struct packet_queue *queue = (struct packet_queue *)base;
	struct pollfd fds[PORTS_MAX + 1];
	/* Out of budget: the rings may be full of packets we mustn't take, so only time and the
	 * end of the run can wake us (another worker may still give back what it claimed). */
	nfds_t count = queue->out_of_budget ? 0 : queue->port_count;
	int timeout_ms = queue->out_of_budget ? 10 : queue->poll ? 0 : -1;

	for (nfds_t i = 0; i < count; i++)
		fds[i] = (struct pollfd){ .fd = queue->sockets[i].fd, .events = POLLIN };
	fds[count] = (struct pollfd){ .fd = queue->stop_fd, .events = POLLIN };
	if (poll(fds, count + 1, timeout_ms) < 0)
		return errno == EINTR ? IO_AGAIN : IO_FAILED;
	if (fds[count].revents)
		return IO_END;
	for (nfds_t i = 0; i < count; i++) {
		if (fds[i].revents & (POLLERR | POLLHUP | POLLNVAL)) {
			int error = 0;
			socklen_t size = sizeof error;
			getsockopt(fds[i].fd, SOL_SOCKET, SO_ERROR, &error, &size);
			fprintf(stderr, "hopscope-demo: port %zu: %s\n", (size_t)i, strerror(error));
			return IO_FAILED;
		}
	}
	return IO_AGAIN;
}

static void packet_counts(struct io_queue *base, struct io_counts *counts)
{
	struct packet_queue *queue = (struct packet_queue *)base;
	*counts = (struct io_counts){ 0 };
	for (uint32_t port = 0; port < queue->port_count; port++) {
		struct packet_socket *socket = &queue->sockets[port];
		packet_socket_statistics(socket);
		counts->kernel_dropped += socket->kernel_dropped;
		counts->oversized += socket->oversized;
		counts->own_outgoing += socket->own_outgoing;
		counts->checksum_unknown += socket->checksum_unknown;
	}
}

static void packet_close(struct io_queue *base)
{
	struct packet_queue *queue = (struct packet_queue *)base;
	for (uint32_t port = 0; port < queue->port_count; port++)
		packet_socket_close(&queue->sockets[port]);
	free(queue);
}

static const struct io packet_io = {
	.name = "packet",
	.receive = packet_receive,
	.send = packet_send,
	.release = packet_release,
	.wait = packet_wait,
	.counts = packet_counts,
	.close = packet_close,
};

/* Before the last worker's socket joined, the others got its flows too: forget those. */
static void forget_early_packets(struct packet_queue *queue)
{
	struct packet_view views[FRAME_PACKETS_MAX];
	for (uint32_t port = 0; port < queue->port_count; port++) {
		while (packet_socket_receive(&queue->sockets[port], views, FRAME_PACKETS_MAX))
			packet_socket_release(&queue->sockets[port]);
		packet_socket_release(&queue->sockets[port]);
	}
}

int io_packet_open(struct io_queue **queues, uint32_t workers, const char *const *ports, uint32_t port_count,
		   bool poll, uint32_t ring_slots, struct budget *budget, int stop_fd)
{
	int fanout[PORTS_MAX];
	uint32_t worker;

	for (uint32_t port = 0; port < port_count; port++)
		fanout[port] = -1;
	for (worker = 0; worker < workers; worker++) {
		struct packet_queue *queue = calloc(1, sizeof *queue);
		if (!queue) {
			fprintf(stderr, "hopscope-demo: no memory for a packet queue\n");
			return -1;
		}
		queues[worker] = &queue->base;
		queue->base.io = &packet_io;
		queue->budget = budget;
		queue->poll = poll;
		queue->stop_fd = stop_fd;
		for (uint32_t port = 0; port < port_count; port++) {
			if (packet_socket_open(&queue->sockets[port], ports[port], ring_slots,
					       workers > 1 ? &fanout[port] : NULL) != 0)
				return -1;
			queue->port_count++;
		}
	}
	for (worker = 0; worker < workers; worker++)
		forget_early_packets((struct packet_queue *)queues[worker]);
	return 0;
}
