/* Packets that this kernel sends and that found no slot: where they are received, or cut into segments, they are not
 * counted again. */
#pragma once
#include "parents.h"

static __always_inline struct unplaced *unplaced_at(u64 head)
{
	u32 at = hash64(head) & (UNPLACED - 1);

	return bpf_map_lookup_elem(&unplaced, &at);
}

/* On the sending side. What was dropped on its way since is still there: of what finds no place, the first gives way. */
static __always_inline void no_slot(struct cpu_state *cpu, u64 head)
{
	struct unplaced *place = unplaced_at(head);

	count(cpu, NO_SLOT);
	if (!place)
		return;
	for (u32 way = 0; way < WAYS; way++)
		if (place->heads[way] == head || !__sync_val_compare_and_swap(&place->heads[way], 0, head))
			return;
	place->heads[place->next++ & (WAYS - 1)] = head;
}

static __always_inline bool is_unplaced(u64 head)
{
	struct unplaced *place = unplaced_at(head);

	return place && (place->heads[0] == head || place->heads[1] == head || place->heads[2] == head ||
			 place->heads[3] == head);
}

/* Whether the sending side has counted the packet in this buffer as one without a slot. Asked once. */
static __always_inline bool was_unplaced(u64 head)
{
	struct unplaced *place = unplaced_at(head);

	if (!place)
		return false;
	for (u32 way = 0; way < WAYS; way++)
		if (place->heads[way] == head && __sync_val_compare_and_swap(&place->heads[way], head, 0) == head)
			return true;
	return false;
}

/* A packet of several segments: those are counted in its place when it is cut. */
static __always_inline void unplaced_parent(const struct sk_buff *skb, u64 head, const u8 *l3, u16 l4, bool is6,
					    u32 wire_len)
{
	u32 header = (peek8(l3 + l4 + 8) >> 36 & 15) * 4;
	u64 start = peek8(l3 + l4);
	u32 seq = __builtin_bswap32(start >> 32);
	struct ref none = {};

	if (wire_len <= l4 + header || segments_of(skb, head) < 2)
		return;
	keep_parent(flow_key(start, l3 + (is6 ? 8 : 12), is6), none, head | NO_RECORD, seq, seq + wire_len - l4 - header);
}
