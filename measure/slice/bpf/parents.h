/* Packets of several segments that are under way: software GSO may cut them before the driver. */
#pragma once
#include "end.h"

/* In place of a socket, of a packet that found no slot and has no record for its segments: its buffer, and this. */
#define NO_RECORD 1ULL

static __always_inline u64 flow_key(u64 ports, const u8 *addresses, bool is6)
{
	u64 key = ports & 0xffffffff;

	key = key << 32 ^ peek8(addresses);
	if (is6)
		key ^= peek8(addresses + 8) ^ peek8(addresses + 16) * 3 ^ peek8(addresses + 24) * 5;
	return key;
}

static __always_inline struct flow_parents *parents_of(u64 key)
{
	u32 at = hash64(key) & (PARENTS - 1);

	return bpf_map_lookup_elem(&parents, &at);
}

static __always_inline u16 segments_of(const struct sk_buff *skb, u64 head)
{
	const struct skb_shared_info *shared = (const void *)(head + skb->end);
	u16 segments = 0;

	bpf_core_read(&segments, sizeof(segments), &shared->gso_segs);
	return segments;
}

static __always_inline void keep_parent(u64 key, struct ref ref, u64 sk, u32 seq, u32 end_seq)
{
	struct flow_parents *flow = parents_of(key);
	struct parent *parent;

	if (!flow)
		return;
	if (flow->key != key) {
		flow->key = key;
		/* What another flow left here is not this one's. */
		for (u32 at = 0; at < PARENTS_OF_FLOW; at++)
			flow->kept[at].ref.gen = ENDING;
	}
	parent = &flow->kept[flow->next++ & (PARENTS_OF_FLOW - 1)];
	parent->ref = ref;
	parent->sk = sk;
	parent->seq = seq;
	parent->end_seq = end_seq;
}

/* Of the flow, the packet with this byte. */
static __always_inline struct parent *parent_with(u64 key, u32 seq)
{
	struct flow_parents *flow = parents_of(key);

	if (!flow || flow->key != key)
		return NULL;
	for (u32 back = 1; back <= PARENTS_OF_FLOW; back++) {
		struct parent *parent = &flow->kept[(flow->next - back) & (PARENTS_OF_FLOW - 1)];

		if (!(parent->ref.gen & ENDING) && (s32)(seq - parent->seq) >= 0 &&
		    (s32)(parent->end_seq - seq) > 0)
			return parent;
	}
	return NULL;
}
