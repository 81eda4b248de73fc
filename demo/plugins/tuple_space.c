#include "tuple_space.h"

#include <stdlib.h>
#include <string.h>

/* 33 prefix lengths twice, with and without a protocol. */
#define GROUPS_MAX (33 * 33 * 2)
#define NONE UINT32_MAX

struct group {
	uint32_t source_mask, destination_mask;
	uint8_t protocol_mask;  /* 0 or 0xff */
	uint32_t best_rule;     /* lowest rule number inside */
	uint32_t bucket_mask;
	uint32_t *buckets;      /* lowest rule of the chain, or NONE */
};

struct tuple_space {
	const struct rule *rules;
	uint32_t *next;         /* per rule: the next higher one in its bucket, or NONE */
	uint32_t group_count;
	struct group groups[GROUPS_MAX]; /* by best_rule: a search may stop at the first that can't win */
};

static uint32_t hash(uint32_t source, uint32_t destination, uint8_t protocol)
{
	uint64_t mixed = ((uint64_t)source << 32 | destination) * 0x9e3779b97f4a7c15u;
	mixed ^= (uint64_t)protocol * 0xff51afd7ed558ccdu;
	return (uint32_t)(mixed >> 32) ^ (uint32_t)(mixed >> 17);
}

static bool belongs(const struct group *group, const struct rule *rule)
{
	return group->source_mask == prefix_mask(rule->source_prefix) &&
	       group->destination_mask == prefix_mask(rule->destination_prefix) &&
	       (group->protocol_mask != 0) == (rule->protocol != PROTOCOL_ANY);
}

static struct group *group_of(struct tuple_space *space, const struct rule *rule, uint32_t number)
{
	for (uint32_t i = 0; i < space->group_count; i++)
		if (belongs(&space->groups[i], rule))
			return &space->groups[i];
	struct group *group = &space->groups[space->group_count++];
	*group = (struct group){
		.source_mask = prefix_mask(rule->source_prefix),
		.destination_mask = prefix_mask(rule->destination_prefix),
		.protocol_mask = rule->protocol == PROTOCOL_ANY ? 0 : 0xff,
		.best_rule = number,
	};
	return group;
}

static bool fill(struct tuple_space *space, struct group *group, uint32_t rule_count)
{
	uint32_t members = 0, buckets = 4;
	for (uint32_t i = 0; i < rule_count; i++)
		members += belongs(group, &space->rules[i]);
	while (buckets < 2 * members)
		buckets *= 2;
	group->bucket_mask = buckets - 1;
	group->buckets = malloc(buckets * sizeof *group->buckets);
	if (!group->buckets)
		return false;
	memset(group->buckets, 0xff, buckets * sizeof *group->buckets);
	/* From the last to the first, so that chains end up in rule order. */
	for (uint32_t i = rule_count; i-- > 0;) {
		const struct rule *rule = &space->rules[i];
		if (!belongs(group, rule))
			continue;
		uint32_t *bucket = &group->buckets[hash(rule->source, rule->destination, rule->protocol) & group->bucket_mask];
		space->next[i] = *bucket;
		*bucket = i;
	}
	return true;
}

struct tuple_space *tuple_space_build(const struct rule_set *rules)
{
	struct tuple_space *space = calloc(1, sizeof *space);
	if (!space)
		return NULL;
	space->rules = rules->rules;
	space->next = malloc((rules->count + 1) * sizeof *space->next);
	if (!space->next) {
		tuple_space_free(space);
		return NULL;
	}
	/* In rule order, so groups come out ordered by their best rule. */
	for (uint32_t i = 0; i < rules->count; i++)
		group_of(space, &rules->rules[i], i);
	for (uint32_t i = 0; i < space->group_count; i++) {
		if (!fill(space, &space->groups[i], rules->count)) {
			tuple_space_free(space);
			return NULL;
		}
	}
	return space;
}

bool tuple_space_permit(const struct tuple_space *space, const struct five_tuple *flow)
{
	uint32_t best = NONE;
	for (uint32_t i = 0; i < space->group_count && space->groups[i].best_rule < best; i++) {
		const struct group *group = &space->groups[i];
		uint32_t source = flow->source & group->source_mask;
		uint32_t destination = flow->destination & group->destination_mask;
		uint8_t protocol = flow->protocol & group->protocol_mask;
		uint32_t number = group->buckets[hash(source, destination, protocol) & group->bucket_mask];
		for (; number < best; number = space->next[number]) {
			const struct rule *rule = &space->rules[number];
			if (rule->source == source && rule->destination == destination && rule->protocol == protocol &&
			    rule_ports_match(rule, flow))
				best = number;
		}
	}
	return best != NONE && space->rules[best].permit;
}

void tuple_space_free(struct tuple_space *space)
{
	if (!space)
		return;
	for (uint32_t i = 0; i < space->group_count; i++)
		free(space->groups[i].buckets);
	free(space->next);
	free(space);
}
