/* The access list: ordered five-tuple rules, the first match decides, no match denies. */
#ifndef DEMO_RULES_H
#define DEMO_RULES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "frame.h"

#define RULES_MAX 65536
#define PROTOCOL_ANY 0

struct rule {
	uint32_t source;       /* host byte order, bits behind the prefix are 0 */
	uint32_t destination;
	uint16_t source_port_first, source_port_last;
	uint16_t destination_port_first, destination_port_last;
	uint8_t source_prefix, destination_prefix;
	uint8_t protocol;      /* PROTOCOL_ANY matches all */
	bool permit;
};

struct rule_set {
	struct rule *rules;
	uint32_t count;
};

static inline uint32_t prefix_mask(uint8_t length)
{
	return length == 0 ? 0 : UINT32_MAX << (32 - length);
}

static inline bool rule_ports_match(const struct rule *rule, const struct five_tuple *flow)
{
	return flow->source_port >= rule->source_port_first && flow->source_port <= rule->source_port_last &&
	       flow->destination_port >= rule->destination_port_first &&
	       flow->destination_port <= rule->destination_port_last;
}

/* Both return 0, or -1 after a line on stderr. */
int rules_generate(struct rule_set *set, uint64_t seed, uint32_t count);
int rules_read(struct rule_set *set, const char *path);
void rules_print(const struct rule_set *set, FILE *out);
void rules_free(struct rule_set *set);
/* The plain definition, rule by rule: the oracle for the fast table of the ACL module. */
bool rules_permit(const struct rule_set *set, const struct five_tuple *flow);

#endif
