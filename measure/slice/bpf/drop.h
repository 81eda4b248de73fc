/* Packets that the kernel gives up. */
#pragma once
#include "udp_read.h"

struct drop_walk {
	struct ref ref;
	u32 reason;
};

/* With a packet, those that GRO merged into it. */
static long drop_merged(u32 i, struct drop_walk *walk)
{
	struct cpu_state *cpu = this_cpu();
	struct slot *slot = follow(walk->ref);
	struct ref ref = walk->ref;

	if (!cpu || !slot)
		return 1;
	walk->ref = slot->merged;
	slot->record.flags |= F_DROPPED;
	slot->record.drop_reason = walk->reason;
	end(cpu, slot, ref);
	return 0;
}

/* The kernel gives the packet up, and says why. */
static __always_inline void on_drop(struct cpu_state *cpu, const struct sk_buff *skb, u32 reason)
{
	u64 head = head_of(skb);
	struct ref ref;
	struct slot *slot = find(head, &ref);

	if (!slot || slot->skb != (u64)skb || !is_same(slot, head)) {
		cpu->counters[HITS]++;
		return;
	}
	slot->record.flags |= F_DROPPED;
	slot->record.drop_reason = reason;
	if (slot->cover_end != slot->end_seq) {
		struct drop_walk walk = { .ref = slot->merged, .reason = reason };

		bpf_loop(GRO_KEPT, drop_merged, &walk, 0);
	}
	end(cpu, slot, ref);
}
