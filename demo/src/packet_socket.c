#define _GNU_SOURCE
#include "packet_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "checksum.h"

#define SLOT_BYTES 2048u
#define BLOCK_BYTES 65536u
#define TAG_BYTES 4

#ifndef PACKET_FANOUT_FLAG_IGNORE_OUTGOING
#define PACKET_FANOUT_FLAG_IGNORE_OUTGOING 0x4000
#endif

static size_t ring_bytes(const struct packet_socket *socket)
{
	return (size_t)SLOT_BYTES * socket->slots;
}

static int set(int fd, int option, const void *value, socklen_t size)
{
	return setsockopt(fd, SOL_PACKET, option, value, size);
}

static int set_int(int fd, int option, int value)
{
	return set(fd, option, &value, sizeof value);
}

static int join_fanout(int fd, int *id)
{
	int value = *id;
	int flags = PACKET_FANOUT_FLAG_IGNORE_OUTGOING;
	socklen_t size = sizeof value;

	/* The first socket lets the kernel choose an id that nobody in this namespace uses. */
	if (*id < 0) {
		value = 0;
		flags |= PACKET_FANOUT_FLAG_UNIQUEID;
	}
	if (set_int(fd, PACKET_FANOUT, (PACKET_FANOUT_HASH | flags) << 16 | value) != 0)
		return -1;
	if (*id >= 0)
		return 0;
	if (getsockopt(fd, SOL_PACKET, PACKET_FANOUT, &value, &size) != 0)
		return -1;
	*id = value & 0xffff;
	return 0;
}

static int set_up(struct packet_socket *socket, unsigned int interface, int *fanout_id)
{
	struct tpacket_req request = {
		.tp_block_size = BLOCK_BYTES,
		.tp_block_nr = (unsigned int)(ring_bytes(socket) / BLOCK_BYTES),
		.tp_frame_size = SLOT_BYTES,
		.tp_frame_nr = socket->slots,
	};
	struct packet_mreq promiscuous = { .mr_ifindex = (int)interface, .mr_type = PACKET_MR_PROMISC };
	struct sockaddr_ll address = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)interface,
	};
	int fd = socket->fd;

	/* The kernel takes VLAN tags out of packets; the reserve is room to put them back in place. */
	if (set_int(fd, PACKET_VERSION, TPACKET_V2) != 0 || set_int(fd, PACKET_RESERVE, TAG_BYTES) != 0 ||
	    set_int(fd, PACKET_IGNORE_OUTGOING, 1) != 0 || set(fd, PACKET_RX_RING, &request, sizeof request) != 0)
		return -1;
	void *ring = mmap(NULL, ring_bytes(socket), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ring == MAP_FAILED)
		return -1;
	socket->ring = ring;
	/* No queueing discipline: it would queue, reorder or drop behind our back. */
	if (set_int(fd, PACKET_QDISC_BYPASS, 1) != 0 ||
	    set(fd, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof promiscuous) != 0 ||
	    bind(fd, (struct sockaddr *)&address, sizeof address) != 0)
		return -1;
	return fanout_id ? join_fanout(fd, fanout_id) : 0;
}

int packet_socket_open(struct packet_socket *packet_socket, const char *interface, uint32_t slots, int *fanout_id)
{
	*packet_socket = (struct packet_socket){ .fd = -1, .slots = slots };
	unsigned int index = if_nametoindex(interface);
	if (index == 0) {
		fprintf(stderr, "interface %s: %s\n", interface, strerror(errno));
		return -1;
	}
	/* Protocol 0: nothing is queued until bind. */
	packet_socket->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (packet_socket->fd < 0) {
		fprintf(stderr, "packet socket: %s: needs root (CAP_NET_RAW)\n", strerror(errno));
		return -1;
	}
	if (set_up(packet_socket, index, fanout_id) != 0) {
		fprintf(stderr, "packet socket on %s: %s\n", interface, strerror(errno));
		packet_socket_close(packet_socket);
		return -1;
	}
	return 0;
}

/* Puts the tag that the kernel took out back between the addresses and the type. */
static void restore_tag(struct packet_view *view, const struct tpacket2_hdr *header)
{
	uint8_t *data = view->data - TAG_BYTES;
	memmove(data, view->data, 12);
	store_be16(data + 12, header->tp_status & TP_STATUS_VLAN_TPID_VALID ? header->tp_vlan_tpid : ETH_P_8021Q);
	store_be16(data + 14, header->tp_vlan_tci);
	view->data = data;
	view->length += TAG_BYTES;
}

/* False: not for us; counted by its reason. */
static bool take(struct packet_socket *socket, struct tpacket2_hdr *header, struct packet_view *view)
{
	const struct sockaddr_ll *from = (const void *)((uint8_t *)header + TPACKET_ALIGN(sizeof *header));
	view->data = (uint8_t *)header + header->tp_mac;
	view->length = header->tp_snaplen;
	if (from->sll_pkttype == PACKET_OUTGOING) {
		socket->own_outgoing++;
		return false;
	}
	if (header->tp_snaplen < header->tp_len) {
		socket->oversized++;
		return false;
	}
	/* Sent by a local stack that left the checksum to the device: here the device is us. */
	if ((header->tp_status & TP_STATUS_CSUMNOTREADY) && !checksum_finish(view->data, view->length)) {
		socket->checksum_unknown++;
		return false;
	}
	if ((header->tp_status & TP_STATUS_VLAN_VALID) && view->length >= 12)
		restore_tag(view, header);
	return true;
}

static struct tpacket2_hdr *slot_at(const struct packet_socket *socket, uint32_t index)
{
	return (struct tpacket2_hdr *)(socket->ring + (size_t)(index % socket->slots) * SLOT_BYTES);
}

uint32_t packet_socket_receive(struct packet_socket *socket, struct packet_view *views, uint32_t most)
{
	uint32_t count = 0;
	while (count < most && socket->held < socket->slots) {
		struct tpacket2_hdr *header = slot_at(socket, socket->head);
		if (!(__atomic_load_n(&header->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER))
			break;
		if (take(socket, header, &views[count]))
			count++;
		socket->head++;
		socket->held++;
	}
	return count;
}

void packet_socket_release(struct packet_socket *socket)
{
	for (; socket->held; socket->held--)
		__atomic_store_n(&slot_at(socket, socket->head - socket->held)->tp_status, TP_STATUS_KERNEL,
				 __ATOMIC_RELEASE);
}

uint32_t packet_socket_send(struct packet_socket *socket, const struct packet_view *views, uint32_t count, bool *taken)
{
	struct mmsghdr messages[FRAME_PACKETS_MAX];
	struct iovec parts[FRAME_PACKETS_MAX];
	uint32_t sent = 0, refused = 0;

	for (uint32_t i = 0; i < count; i++) {
		parts[i] = (struct iovec){ .iov_base = views[i].data, .iov_len = views[i].length };
		messages[i] = (struct mmsghdr){ .msg_hdr = { .msg_iov = &parts[i], .msg_iovlen = 1 } };
		taken[i] = true;
	}
	while (sent < count) {
		int done = sendmmsg(socket->fd, messages + sent, count - sent, 0);
		if (done > 0) {
			sent += (uint32_t)done;
		} else if (errno != EINTR) {
			/* The error is the first packet's; the others may still go. */
			taken[sent++] = false;
			refused++;
		}
	}
	return refused;
}

void packet_socket_statistics(struct packet_socket *socket)
{
	struct tpacket_stats statistics;
	socklen_t size = sizeof statistics;
	/* The kernel resets its counts on reading. */
	if (getsockopt(socket->fd, SOL_PACKET, PACKET_STATISTICS, &statistics, &size) == 0)
		socket->kernel_dropped += statistics.tp_drops;
}

void packet_socket_close(struct packet_socket *socket)
{
	if (socket->ring)
		munmap(socket->ring, ring_bytes(socket));
	if (socket->fd >= 0)
		close(socket->fd);
	socket->ring = NULL;
	socket->fd = -1;
}
