/* What a worker counts: every received packet ends as forwarded or under one drop reason. */
#ifndef DEMO_COUNTERS_H
#define DEMO_COUNTERS_H

#include <stdint.h>

#include "frame.h"

#define DROP_REASONS(X)                                                        \
	X(FRAME_LENGTH, frame_length)     /* shorter than a header, or too long */ \
	X(SOURCE_MAC, source_mac)         /* group address or zero as source */    \
	X(VLAN_STACKED, vlan_stacked)     /* more than one tag */                  \
	X(LINK_LOCAL, link_local)         /* 01:80:c2:00:00:0x stays on its link */ \
	X(ETHER_TYPE, ether_type)         /* neither IPv4 nor ARP */               \
	X(IPV4_HEADER, ipv4_header)       /* lengths that contradict each other */ \
	X(IPV4_FRAGMENT, ipv4_fragment)   /* has no ports to match */              \
	X(L4_HEADER, l4_header)           /* too short to hold the ports */        \
	X(ACL_DENY, acl_deny)                                                      \
	X(SAME_PORT, same_port)           /* destination is where it came from */  \
	X(DEVICE_REFUSED, device_refused) /* no output device took it */

enum drop_reason {
#define X(name, text) DROP_##name,
	DROP_REASONS(X)
#undef X
	DROP_REASON_COUNT
};

struct counters {
	uint64_t frames;
	uint64_t packets;
	uint64_t bytes;
	uint64_t forwarded;
	uint64_t flooded;
	uint64_t drops[DROP_REASON_COUNT];
	uint64_t out_packets[PORTS_MAX];
	uint64_t out_refused[PORTS_MAX];
};

const char *drop_reason_name(enum drop_reason reason);
void counters_add(struct counters *total, const struct counters *part);
uint64_t counters_dropped(const struct counters *counters);

#endif
