#include "packet_build.h"

#include <string.h>

#include "checksum.h"
#include "random.h"

static void store_be64(uint8_t *at, uint64_t value)
{
	store_be32(at, (uint32_t)(value >> 32));
	store_be32(at + 4, (uint32_t)value);
}

static void build_ipv4(uint8_t *ip, const struct five_tuple *flow, uint32_t length)
{
	memset(ip, 0, 20);
	ip[0] = 0x45;
	store_be16(ip + 2, (uint16_t)length);
	ip[6] = 0x40; /* don't fragment */
	ip[8] = 64;
	ip[9] = flow->protocol;
	store_be32(ip + 12, flow->source);
	store_be32(ip + 16, flow->destination);
	store_be16(ip + 10, checksum(ip, 20, 0));
}

static void build_l4(uint8_t *ip, const struct packet_plan *plan, uint32_t l4_length)
{
	const struct five_tuple *flow = &plan->flow;
	uint8_t *l4 = ip + 20;
	uint32_t field;

	if (flow->protocol == 6) {
		memset(l4, 0, 20);
		l4[12] = 0x50;
		l4[13] = 0x10; /* ACK */
		field = 16;
	} else if (flow->protocol == 17) {
		memset(l4, 0, 8);
		store_be16(l4 + 4, (uint16_t)l4_length);
		field = 6;
	} else {
		return;
	}
	store_be16(l4, flow->source_port);
	store_be16(l4 + 2, flow->destination_port);
	if (plan->l4_checksum) {
		uint16_t sum = checksum(l4, l4_length, checksum_pseudo_header(ip, flow->protocol, l4_length));
		store_be16(l4 + field, sum == 0 && flow->protocol == 17 ? 0xffff : sum);
	}
}

void packet_build(uint8_t *out, const struct packet_plan *plan)
{
	uint32_t l3 = packet_plan_l3(plan);
	uint64_t state = plan->payload_seed;

	memcpy(out, plan->destination, 6);
	memcpy(out + 6, plan->source, 6);
	if (plan->vlan) {
		store_be16(out + 12, ETHER_VLAN);
		store_be16(out + 14, plan->vlan);
	}
	store_be16(out + l3 - 2, ETHER_IPV4);
	for (uint32_t i = l3 + 20; i < plan->length; i += 8) {
		uint64_t random = random_next(&state);
		uint32_t left = plan->length - i;
		memcpy(out + i, &random, left < 8 ? left : 8);
	}
	store_be64(out + plan->length - 8, plan->stamp);
	build_ipv4(out + l3, &plan->flow, plan->length - l3);
	build_l4(out + l3, plan, plan->length - l3 - 20);
}
