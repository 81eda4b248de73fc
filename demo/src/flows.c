#include <stdio.h>

#include "packet_build.h"
#include "random.h"

static uint16_t port_within(uint64_t *state, uint16_t first, uint16_t last)
{
	return (uint16_t)(first + random_below(state, (uint32_t)last - first + 1));
}

/* Flows drawn from inside a rule: a tuple drawn at large would nearly always match none. */
static struct five_tuple tuple_within(uint64_t *state, const struct rule *rule)
{
	struct five_tuple tuple = {
		.source = rule->source | ((uint32_t)random_next(state) & ~prefix_mask(rule->source_prefix)),
		.destination = rule->destination | ((uint32_t)random_next(state) & ~prefix_mask(rule->destination_prefix)),
		.protocol = rule->protocol,
	};
	if (tuple.protocol == PROTOCOL_ANY)
		tuple.protocol = random_below(state, 4) ? 17 : 6;
	if (tuple.protocol == 6 || tuple.protocol == 17) {
		tuple.source_port = port_within(state, rule->source_port_first, rule->source_port_last);
		tuple.destination_port = port_within(state, rule->destination_port_first, rule->destination_port_last);
	}
	return tuple;
}

int flows_choose(struct flow_choice *flows, uint32_t count, const struct rule_set *rules, uint64_t seed,
		 uint32_t denied_percent)
{
	uint32_t denied_left = (uint32_t)((uint64_t)count * denied_percent / 100);
	uint32_t permitted_left = count - denied_left;
	uint32_t chosen = 0;

	/* Bounded: a list that denies all must be refused, not searched for ever. */
	for (uint64_t tries = 0; rules->count && chosen < count && tries < 64ull * count + 4096; tries++) {
		struct five_tuple tuple = tuple_within(&seed, &rules->rules[random_below(&seed, rules->count)]);
		bool permitted = rules_permit(rules, &tuple);
		uint32_t *left = permitted ? &permitted_left : &denied_left;
		if (*left == 0)
			continue;
		(*left)--;
		flows[chosen++] = (struct flow_choice){ .tuple = tuple, .permitted = permitted };
	}
	if (chosen < count) {
		fprintf(stderr, "the rules offer too few %s flows for %u %% denied of %u: use other rules or another share\n",
			denied_left ? "denied" : "permitted", denied_percent, count);
		return -1;
	}
	return 0;
}
