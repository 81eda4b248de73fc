#include "traffic_plan.h"

#include <string.h>

#include "random.h"

/* Upper 24 bits of a stamp; the rest is the packet's number. */
#define STAMP_MAGIC 0x5ca1abull
#define STAMP_SHIFT 40

static const uint16_t vlans[TRAFFIC_VLANS] = { 0, 100, 4094 };

static void set_host(uint8_t mac[6], enum traffic_port side, uint32_t host)
{
	memcpy(mac, (uint8_t[6]){ 0x02, 0x44, 0x45, 0x4d, (uint8_t)side, (uint8_t)host }, 6);
}

static uint32_t all_but(const struct traffic *traffic, enum traffic_port from)
{
	uint32_t ports = 1u << PORT_LEFT | 1u << PORT_RIGHT | (traffic->bystander ? 1u << PORT_BYSTANDER : 0);
	return ports & ~(1u << from);
}

static uint32_t random_length(uint64_t *state)
{
	uint32_t kind = random_below(state, 10);
	uint32_t longest = kind < 6 ? 128 : kind < 9 ? 600 : 1514;
	return 68 + random_below(state, longest - 68 + 1);
}

/* An ARP request; only its addresses and its stamp matter here. */
static void build_broadcast(const struct traffic *traffic, struct traffic_packet *packet, enum traffic_port from,
			    uint32_t host, uint16_t vlan, uint64_t stamp)
{
	struct packet_plan plan = { .vlan = vlan, .length = 72, .payload_seed = stamp, .stamp = stamp };
	uint32_t arp = packet_plan_l3(&plan);

	memset(plan.destination, 0xff, 6);
	set_host(plan.source, from, host);
	packet_build(packet->data, &plan);
	store_be16(packet->data + arp - 2, ETHER_ARP);
	memcpy(packet->data + arp, (uint8_t[8]){ 0, 1, 8, 0, 6, 4, 0, 1 }, 8);
	memcpy(packet->data + arp + 8, plan.source, 6);
	packet->length = plan.length;
	packet->from = from;
	packet->flow = NO_FLOW;
	packet->fate = FORWARDED;
	packet->expected_ports = all_but(traffic, from);
}

#define WAYS_TO_BREAK 10

/* Breaks a good packet in one way, and says which drop reason it must now end under. */
static enum drop_reason break_packet(struct traffic_packet *packet, uint32_t l3, uint32_t way)
{
	uint8_t *data = packet->data;
	switch (way) {
	case 0: /* a later fragment */
		store_be16(data + l3 + 6, 0x0010);
		return DROP_IPV4_FRAGMENT;
	case 1: /* a first fragment */
		store_be16(data + l3 + 6, 0x2000);
		return DROP_IPV4_FRAGMENT;
	case 2: /* says it is longer than it is */
		store_be16(data + l3 + 2, (uint16_t)(packet->length - l3 + 1));
		return DROP_IPV4_HEADER;
	case 3: /* header that ends before it began */
		data[l3] = 0x44;
		return DROP_IPV4_HEADER;
	case 4: /* TCP without room for its ports */
		data[l3 + 9] = 6;
		store_be16(data + l3 + 2, 22);
		return DROP_L4_HEADER;
	case 5:
		store_be16(data + l3 - 2, 0x86dd);
		return DROP_ETHER_TYPE;
	case 6:
		data[6] |= 1;
		return DROP_SOURCE_MAC;
	case 7: /* a second tag, or the tag of a provider bridge */
		store_be16(data + l3 - 2, ETHER_VLAN_OUTER);
		return DROP_VLAN_STACKED;
	case 8: /* to a neighbour that needs no bridge */
		set_host(data, packet->from, (data[11] + 1u) % TRAFFIC_HOSTS);
		if (packet->fate != FORWARDED)
			return packet->fate;
		return DROP_SAME_PORT;
	default: /* spanning tree's address */
		memcpy(data, (uint8_t[6]){ 0x01, 0x80, 0xc2, 0, 0, 0 }, 6);
		return DROP_LINK_LOCAL;
	}
}

static void build_unicast(const struct traffic *traffic, struct traffic_packet *packet, uint64_t *state, uint64_t stamp)
{
	uint32_t index = random_below(state, TRAFFIC_FLOWS);
	const struct flow_choice *flow = &traffic->flows[index];
	/* All that the kernel may hash or the bridge may learn hangs on the flow. */
	enum traffic_port from = index & 1 ? PORT_RIGHT : PORT_LEFT;
	enum traffic_port to = index & 1 ? PORT_LEFT : PORT_RIGHT;
	struct packet_plan plan = {
		.vlan = vlans[index % 10 == 0 ? 1 + index / 10 % 2 : 0],
		.flow = flow->tuple,
		.length = random_length(state),
		.payload_seed = random_next(state),
		.stamp = stamp,
		.l4_checksum = true,
	};
	set_host(plan.source, from, index / 2 % TRAFFIC_HOSTS);
	set_host(plan.destination, to, index / 32 % TRAFFIC_HOSTS);
	packet_build(packet->data, &plan);
	packet->length = plan.length;
	packet->from = from;
	packet->flow = index;
	packet->fate = flow->permitted ? FORWARDED : DROP_ACL_DENY;
	packet->expected_ports = flow->permitted ? 1u << to : 0;
	if (random_below(state, 64) == 0) {
		packet->flow = NO_FLOW;
		packet->fate = break_packet(packet, packet_plan_l3(&plan), random_below(state, WAYS_TO_BREAK));
		packet->expected_ports = 0;
	}
}

void traffic_packet_build(const struct traffic *traffic, uint64_t number, struct traffic_packet *packet)
{
	uint64_t stamp = STAMP_MAGIC << STAMP_SHIFT | number;
	uint64_t state = traffic->seed ^ number * 0xd1342543de82ef95u;

	if (number < TRAFFIC_ANNOUNCEMENTS) {
		uint32_t host = (uint32_t)number / 2 % TRAFFIC_HOSTS;
		uint16_t vlan = vlans[number / 2 / TRAFFIC_HOSTS];
		build_broadcast(traffic, packet, number & 1 ? PORT_RIGHT : PORT_LEFT, host, vlan, stamp);
	} else if (random_below(&state, 100) == 0) {
		enum traffic_port from = random_below(&state, 2) ? PORT_RIGHT : PORT_LEFT;
		uint32_t host = random_below(&state, TRAFFIC_HOSTS);
		build_broadcast(traffic, packet, from, host, vlans[random_below(&state, TRAFFIC_VLANS)], stamp);
	} else {
		build_unicast(traffic, packet, &state, stamp);
	}
}

bool traffic_packet_number(const uint8_t *data, uint32_t length, uint64_t *number)
{
	if (length < BUILD_BYTES_MIN)
		return false;
	uint64_t stamp = (uint64_t)load_be32(data + length - 8) << 32 | load_be32(data + length - 4);
	*number = stamp & ((1ull << STAMP_SHIFT) - 1);
	return stamp >> STAMP_SHIFT == STAMP_MAGIC;
}

int traffic_plan(struct traffic *traffic, const struct rule_set *rules, uint64_t seed, uint32_t denied_percent,
		 bool bystander)
{
	traffic->seed = seed;
	traffic->bystander = bystander;
	return flows_choose(traffic->flows, TRAFFIC_FLOWS, rules, seed, denied_percent);
}
