/* Builds the packets of the memory source and of the traffic. */
#ifndef DEMO_PACKET_BUILD_H
#define DEMO_PACKET_BUILD_H

#include <stdbool.h>
#include <stdint.h>

#include "frame.h"
#include "rules.h"

#define BUILD_BYTES_MIN 64

struct packet_plan {
	uint8_t destination[6];
	uint8_t source[6];
	uint16_t vlan;          /* 0: untagged */
	struct five_tuple flow;
	uint32_t length;        /* of the frame, BUILD_BYTES_MIN to PACKET_BYTES_MAX */
	uint64_t payload_seed;
	uint64_t stamp;         /* the last 8 bytes, big-endian */
	bool l4_checksum;       /* false: the field is 0 */
};

/* Where IPv4 starts in what packet_build wrote. */
static inline uint32_t packet_plan_l3(const struct packet_plan *plan)
{
	return plan->vlan ? 18 : 14;
}

void packet_build(uint8_t *out, const struct packet_plan *plan);

/* A five-tuple and what the rules say about it, by the plain definition. */
struct flow_choice {
	struct five_tuple tuple;
	bool permitted;
};

/* Chooses flows of which denied_percent are denied. 0, or -1 after a line on stderr when
 * the rules have too few of one kind. */
int flows_choose(struct flow_choice *flows, uint32_t count, const struct rule_set *rules, uint64_t seed,
		 uint32_t denied_percent);

#endif
