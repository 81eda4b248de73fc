/* Module 2: the packet's place in the bridge: its VLAN is its bridge domain. */
#include "module.h"

static uint64_t mac_key(const uint8_t mac[6], uint16_t vlan)
{
	/* Bit 60 tells a key from an empty slot of the MAC table. */
	return 1ull << 60 | (uint64_t)vlan << 48 | (uint64_t)load_be32(mac) << 16 | load_be16(mac + 4);
}

MODULE void l2_input(struct worker *worker, struct frame *frame)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < frame->count; i++) {
		struct packet *packet = &frame->packets[frame->alive[i]];
		const uint8_t *data = packet->data;
		/* IEEE 802.1D 7.12.6: these sixteen addresses never cross a bridge. */
		if (load_be32(data) == 0x0180c200 && data[4] == 0 && data[5] < 16) {
			packet_drop(worker, DROP_LINK_LOCAL);
			continue;
		}
		packet->destination_key = mac_key(data, packet->vlan);
		packet->source_key = mac_key(data + 6, packet->vlan);
		packet->out_ports = 0;
		frame->alive[kept++] = frame->alive[i];
	}
	frame->count = kept;
}
