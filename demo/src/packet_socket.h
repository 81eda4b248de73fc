/* One AF_PACKET socket on one interface: a TPACKET_V2 receive ring, plain sends. */
#ifndef DEMO_PACKET_SOCKET_H
#define DEMO_PACKET_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "frame.h"

struct packet_socket {
	int fd;
	uint8_t *ring;
	uint32_t slots;
	uint32_t head;  /* next slot to look at */
	uint32_t held;  /* slots before head that the kernel hasn't back yet */
	uint64_t oversized, own_outgoing, checksum_unknown, kernel_dropped;
};

struct packet_view {
	uint8_t *data;
	uint32_t length;
};

/* The kernel drops packets when all slots are full, a power of two from 32 on. Fan-out by flow among sockets
 * of one interface: start with id -1. NULL: this socket gets all.
 * Returns 0, or -1 after a line on stderr. */
int packet_socket_open(struct packet_socket *socket, const char *interface, uint32_t slots,
		       int *fanout_id);
/* The views stay valid until release. */
uint32_t packet_socket_receive(struct packet_socket *socket, struct packet_view *views, uint32_t most);
void packet_socket_release(struct packet_socket *socket);
/* Sends in order; taken[i] says which the kernel took. Returns how many it refused. */
uint32_t packet_socket_send(struct packet_socket *socket, const struct packet_view *views, uint32_t count, bool *taken);
/* Adds the kernel's count of ring overflows to kernel_dropped. */
void packet_socket_statistics(struct packet_socket *socket);
void packet_socket_close(struct packet_socket *socket);

#endif
