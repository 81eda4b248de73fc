/* Module 1: is it an Ethernet frame that a bridge may forward, and what does it carry? */
#include "module.h"

static bool is_zero_or_group(const uint8_t mac[6])
{
	return (mac[0] & 1) || (load_be32(mac) == 0 && load_be16(mac + 4) == 0);
}

MODULE void ethernet_input(struct worker *worker, struct frame *frame)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < frame->count; i++) {
		struct packet *packet = &frame->packets[frame->alive[i]];
		const uint8_t *data = packet->data;
		worker->counters.bytes += packet->length;
		if (packet->length < PACKET_BYTES_MIN || packet->length > PACKET_BYTES_MAX) {
			packet_drop(worker, DROP_FRAME_LENGTH);
			continue;
		}
		if (is_zero_or_group(data + 6)) {
			packet_drop(worker, DROP_SOURCE_MAC);
			continue;
		}
		packet->ether_type = load_be16(data + 12);
		packet->l3_offset = 14;
		packet->vlan = 0;
		if (packet->ether_type == ETHER_VLAN) {
			if (packet->length < 18) {
				packet_drop(worker, DROP_FRAME_LENGTH);
				continue;
			}
			packet->vlan = load_be16(data + 14) & 0x0fff;
			packet->ether_type = load_be16(data + 16);
			packet->l3_offset = 18;
		}
		if (packet->ether_type == ETHER_VLAN_OUTER || (packet->l3_offset == 18 && packet->ether_type == ETHER_VLAN)) {
			packet_drop(worker, DROP_VLAN_STACKED);
			continue;
		}
		frame->alive[kept++] = frame->alive[i];
	}
	frame->count = kept;
}
