/* What the traffic sends: the number of a packet decides its bytes and where it must come out. */
#ifndef DEMO_TRAFFIC_PLAN_H
#define DEMO_TRAFFIC_PLAN_H

#include <stdint.h>

#include "counters.h"
#include "frame.h"
#include "packet_build.h"
#include "rules.h"

#define TRAFFIC_FLOWS 2048
#define TRAFFIC_HOSTS 16        /* on each side */
#define TRAFFIC_VLANS 3         /* untagged and two tags */
/* First each host says who it is in each VLAN, so that no later unicast packet has to be flooded. */
#define TRAFFIC_ANNOUNCEMENTS (2 * TRAFFIC_HOSTS * TRAFFIC_VLANS)

enum traffic_port { PORT_LEFT, PORT_RIGHT, PORT_BYSTANDER, TRAFFIC_PORTS };

/* No drop reason: the packet is to be forwarded. */
#define FORWARDED DROP_REASON_COUNT
#define NO_FLOW UINT32_MAX

struct traffic {
	struct flow_choice flows[TRAFFIC_FLOWS];
	uint64_t seed;
	bool bystander;
};

struct traffic_packet {
	uint8_t data[PACKET_BYTES_MAX];
	uint32_t length;
	uint32_t flow;            /* NO_FLOW for broadcasts and malformed packets */
	enum traffic_port from;
	uint32_t expected_ports;  /* bit n: must come out of port n, once and unchanged */
	enum drop_reason fate;    /* FORWARDED, or the reason that the firewall must count */
};

/* 0, or -1 after a line on stderr. */
int traffic_plan(struct traffic *traffic, const struct rule_set *rules, uint64_t seed, uint32_t denied_percent,
		 bool bystander);
void traffic_packet_build(const struct traffic *traffic, uint64_t number, struct traffic_packet *packet);
/* The number stamped into a packet; false when it isn't one of ours. */
bool traffic_packet_number(const uint8_t *data, uint32_t length, uint64_t *number);

#endif
