/* The end of a packet's way: its record is handed over and its slot is free. */
#pragma once
#include "connections.h"
#include "stamp.h"

/* Several processors may find at once that a packet's way is over. One of them ends it. */
static __always_inline bool take_over(struct slot *slot, struct ref ref)
{
	return !(ref.gen & ENDING) && __sync_val_compare_and_swap(&slot->gen, ref.gen, ref.gen | ENDING) == ref.gen;
}

/* By whoever took it over. */
static __always_inline void release(struct slot *slot, struct ref ref)
{
	struct bucket *bucket = bucket_at(ref.slot);

	slot->state = 0;
	*(volatile u64 *)&slot->head = 0;
	*(volatile u32 *)&slot->gen = ref.gen + 2;
	/* Last: from here on it is anybody's. */
	if (bucket)
		*(volatile u64 *)&bucket->heads[ref.slot & (WAYS - 1)] = 0;
}

static __always_inline void pass_over(struct cpu_state *cpu, struct slot *slot, struct ref ref, enum counter why)
{
	count(cpu, why);
	release(slot, ref);
}

/* A record that is not handed over, for the reason that is counted. */
static __always_inline void give_up(struct cpu_state *cpu, struct slot *slot, struct ref ref, enum counter why)
{
	if (take_over(slot, ref))
		pass_over(cpu, slot, ref, why);
}

static __always_inline void hand_over_bytes(struct cpu_state *cpu, u32 index)
{
	struct slice_bytes *packet = bpf_map_lookup_elem(&bytes, &index);
	u32 len;

	if (!packet || !packet->captured)
		return;
	len = packet->captured;
	if (len > SNAP_MAX)
		len = SNAP_MAX;
	if (bpf_ringbuf_output(&ring, packet, 40 + len, BPF_RB_NO_WAKEUP))
		count(cpu, BYTES_LOST);
	packet->captured = 0;
}

static __always_inline void hand_over(struct cpu_state *cpu, struct slot *slot, struct ref ref)
{
	struct slice_record *record = &slot->record;

	if (!take_over(slot, ref))
		return;
	if (record->flags & F_DROPPED)
		count(cpu, DROPPED_COUNT);
	if (slot->wake_tid && record->rx_tid && slot->wake_tid != record->rx_tid) {
		record->flags |= F_OTHER_WOKEN;
		count(cpu, OTHER_WOKEN);
	}
	if (control.min_latency_ns && slot->last_ns - record->t0_ns < control.min_latency_ns)
		return pass_over(cpu, slot, ref, TOO_FAST);
	if (is_process_asked_for() && control.choose == CHOOSE_ASKED && !is_wanted(record))
		return pass_over(cpu, slot, ref, OTHER_PROCESS);
	if (config.snap)
		hand_over_bytes(cpu, ref.slot);
	if (bpf_ringbuf_output(&ring, record, sizeof(*record), BPF_RB_NO_WAKEUP))
		count(cpu, RING_FULL);
	else
		count(cpu, WRITTEN);
	cpu->cost += control.hand_over_ns;
	release(slot, ref);
}

/* While the packet's driver has not returned, the hook there will stamp, and hands over in our place. */
static __always_inline void end(struct cpu_state *cpu, struct slot *slot, struct ref ref)
{
	if (has(TX_DONE)) {
		u32 state = __sync_fetch_and_or(&slot->state, ENDED);
		if (state & (IN_DRIVER | ENDED))
			return;
	}
	hand_over(cpu, slot, ref);
}

/* Takes the slot from the driver's hook. True: its packet's way is over, and the caller hands over. */
static __always_inline bool claim(struct slot *slot)
{
	return __sync_fetch_and_and(&slot->state, ~(IN_DRIVER | ENDED)) & ENDED;
}
