/* Plug-in: modules 3 and 5, the way into and out of the optional features. */
#include <stdio.h>
#include <stdlib.h>

#include "../src/module.h"
#include "sessions.h"

static struct sessions sessions_in, sessions_out;

enum { IPV4_HEADER_MIN = 20, PROTOCOL_TCP = 6, PROTOCOL_UDP = 17 };
#define PARSED DROP_REASON_COUNT

/* PARSED, or why the packet can't be matched. */
static HELPER enum drop_reason five_tuple_parse(const uint8_t *ip, uint32_t available, struct five_tuple *flow)
{
	if (available < IPV4_HEADER_MIN || ip[0] >> 4 != 4)
		return DROP_IPV4_HEADER;
	uint32_t header = (ip[0] & 0x0fu) * 4;
	uint32_t total = load_be16(ip + 2);
	/* Below `available` is legal: Ethernet pads short frames. */
	if (header < IPV4_HEADER_MIN || total < header || total > available)
		return DROP_IPV4_HEADER;
	/* Any part of a datagram: only its first fragment holds ports, so none of them is let through. */
	if (load_be16(ip + 6) & 0x3fff)
		return DROP_IPV4_FRAGMENT;
	*flow = (struct five_tuple){
		.source = load_be32(ip + 12),
		.destination = load_be32(ip + 16),
		.protocol = ip[9],
	};
	if (flow->protocol == PROTOCOL_TCP || flow->protocol == PROTOCOL_UDP) {
		if (total - header < (flow->protocol == PROTOCOL_TCP ? 20u : 8u))
			return DROP_L4_HEADER;
		flow->source_port = load_be16(ip + header);
		flow->destination_port = load_be16(ip + header + 2);
	}
	return PARSED;
}

static MODULE void feature_arc_in(struct worker *worker, struct frame *frame)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < frame->count; i++) {
		struct packet *packet = &frame->packets[frame->alive[i]];
		packet->has_flow = false;
		/* ARP has no five-tuple and hosts can't talk without it: it goes round the ACL. */
		packet->permitted = packet->ether_type == ETHER_ARP;
		if (packet->ether_type == ETHER_IPV4) {
			enum drop_reason reason = five_tuple_parse(packet->data + packet->l3_offset,
								   packet->length - packet->l3_offset, &packet->flow);
			if (reason != PARSED) {
				packet_drop(worker, reason);
				continue;
			}
			packet->has_flow = true;
			sessions_update(&sessions_in, &packet->flow, packet->length);
		} else if (packet->ether_type != ETHER_ARP) {
			packet_drop(worker, DROP_ETHER_TYPE);
			continue;
		}
		frame->alive[kept++] = frame->alive[i];
	}
	frame->count = kept;
}

static MODULE void feature_arc_out(struct worker *worker, struct frame *frame)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < frame->count; i++) {
		const struct packet *packet = &frame->packets[frame->alive[i]];
		if (!packet->permitted) {
			packet_drop(worker, DROP_ACL_DENY);
			continue;
		}
		if (packet->has_flow)
			sessions_update(&sessions_out, &packet->flow, packet->length);
		frame->alive[kept++] = frame->alive[i];
	}
	frame->count = kept;
}

static int feature_open(const struct settings *settings)
{
	if (sessions_open(&sessions_in, settings->session_bytes) == 0 &&
	    sessions_open(&sessions_out, settings->session_bytes) == 0)
		return 0;
	fprintf(stderr, "hopscope-demo: no memory for the sessions\n");
	return -1;
}

static void feature_close(void)
{
	sessions_close(&sessions_in);
	sessions_close(&sessions_out);
}

static const struct module modules[] = {
	{ "feature_arc_in", feature_arc_in },
	{ "feature_arc_out", feature_arc_out },
};

EXPORT const struct plugin demo_plugin = {
	.abi = PLUGIN_ABI,
	.module_count = 2,
	.modules = modules,
	.open = feature_open,
	.close = feature_close,
};
