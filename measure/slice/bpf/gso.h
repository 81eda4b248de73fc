/* Packets of several segments, and those that software GSO cuts from them before the driver. */
#pragma once
#include "calls.h"

/* A packet of several segments may be cut before the driver. */
static __always_inline void gso_register(struct slot *slot, struct ref ref, const struct sk_buff *skb, u64 head)
{
	bool is6 = slot->record.family == 6;
	u16 segments = segments_of(skb, head);
	u64 key;

	slot->record.segments = segments;
	if (segments < 2 || slot->record.protocol != PROTOCOL_TCP)
		return;
	key = flow_key(slot->id4, (const u8 *)(head + slot->off3 + (is6 ? 8 : 12)), is6);
	keep_parent(key, ref, (u64)sock_of(skb), slot->record.tcp_seq, slot->end_seq);
}

/* A packet may hold the data of several calls; each of its segments is of the call that wrote its first
 * byte. Of what lies between the call and IP's output, the cost of probes is not known then. */
static __always_inline void segment_call(struct slot *slot, u64 sk)
{
	struct slice_record *record = &slot->record;
	u64 last_cost = slot->last_cost, first;
	u32 last_cpu = slot->last_cpu, last_point = slot->last_point;

	if (record->tcp_seq - record->tx_call_seq < record->tx_call_len)
		return;
	forget_send(record);
	if (!sk || !find_send(slot, sk))
		record->flags |= F_QUEUED;
	slot->last_cost = last_cost;
	slot->last_cpu = last_cpu;
	slot->last_point = last_point;
	for (u32 point = TX_SYSCALL; point <= TX_IP_OUT; point++)
		if (record->stamps[point])
			record->stamps[point] |= 0xffffULL << 32;
	/* The record begins with the first stamp that is left. */
	first = record->stamps[TX_SYSCALL] ? record->stamps[TX_SYSCALL] :
		record->stamps[TX_TRANSPORT] ? record->stamps[TX_TRANSPORT] : record->stamps[TX_IP_OUT];
	first = (u32)first;
	for (u32 point = TX_SYSCALL; point <= TX_DRIVER; point++)
		if (record->stamps[point])
			record->stamps[point] -= first;
	slot->base += first;
	record->t0_ns += first;
}

/* Of a packet without a record, unless this is that packet: its segments have none either. The last stands for it, too. */
static __always_inline void count_segment(struct cpu_state *cpu, struct parent *parent, u64 head, u32 end_seq)
{
	if (is_unplaced(head))
		return;
	was_unplaced(parent->sk & ~NO_RECORD);
	no_slot(cpu, head);
	if (end_seq != parent->end_seq)
		return;
	count(cpu, PLACED_LATE);
	parent->ref.gen = ENDING;
}

/* A segment has its packet's socket, or none any more. Whoever sends such bytes on, as a bridge in user space, has one
 * of its own. */
static __always_inline bool is_of_another(const struct sk_buff *skb, const struct parent *parent)
{
	u64 sk = (u64)sock_of(skb);

	return sk && parent->sk && sk != parent->sk;
}

/* A packet at the driver that nobody has seen: a segment that was cut from one that somebody has. */
static __always_inline struct slot *split(struct cpu_state *cpu, const struct sk_buff *skb, u64 head, struct ref *ref)
{
	u16 off3 = skb->network_header;
	const u8 *l3 = (const u8 *)(head + off3);
	bool is6;
	u8 h[64];
	u32 seq, end_seq, ip_len, header, l4;
	u64 key;
	struct parent *parent, whole;
	struct slot *from, *slot;
	u8 ihl;

	if (bpf_probe_read_kernel(h, sizeof(h), l3))
		return NULL;
	is6 = h[0] >> 4 == 6;
	ihl = is6 ? 40 : (h[0] & 15) * 4;
	if ((is6 ? h[6] : h[9]) != PROTOCOL_TCP || ihl > 44)
		return NULL;
	l4 = ihl & 63;
	key = flow_key(*(u32 *)(h + (is6 ? 40 : 20)), l3 + (is6 ? 8 : 12), is6);
	if (!is6 && ihl != 20)
		return NULL;
	seq = be32(h + (is6 ? 44 : 24));
	parent = parent_with(key, seq);
	ip_len = skb->len + (u32)(data_of(skb) - head) - off3;
	header = l4 + (h[(is6 ? 52 : 32)] >> 4) * 4;
	end_seq = seq + (ip_len > header ? ip_len - header : 0);
	if (parent && parent->sk & NO_RECORD) {
		count_segment(cpu, parent, head, end_seq);
		return NULL;
	}
	if (!parent || is_of_another(skb, parent))
		return NULL;
	whole = *parent;
	from = follow(whole.ref);
	if (!from || from->state & ENDED)
		return NULL;
	slot = find(head, ref);
	if (slot && slot->is_kept)
		orphan(head, ref->slot);
	else if (slot)
		give_up(cpu, slot, *ref, STALE_ENDED);
	slot = take(cpu, head, ref);
	if (!slot) {
		no_slot(cpu, head);
		if (end_seq == whole.end_seq)
			give_up(cpu, from, whole.ref, SPLIT_PARENTS);
		return NULL;
	}
	slot->is_kept = 0;
	slot->precopy_point = NO_POINT;
	slot->off3 = off3;
	slot->off4 = off3 + l4;
	slot->mask3 = from->mask3;
	slot->mask4 = from->mask4;
	slot->id3 = *(u64 *)h & slot->mask3;
	slot->id4 = peek8(l3 + l4);
	slot->base = from->base;
	slot->last_ns = from->last_ns;
	slot->last_cost = from->last_cost;
	slot->last_cpu = from->last_cpu;
	slot->last_point = from->last_point;
	slot->state = 0;
	slot->wake_tid = 0;
	slot->merged.gen = ENDING;
	__builtin_memcpy(&slot->record, &from->record, sizeof(slot->record));
	/* Another processor may have ended it, and begun another packet there. */
	if (*(volatile u32 *)&from->gen != whole.ref.gen || from->end_seq != whole.end_seq) {
		release(slot, *ref);
		return NULL;
	}
	count(cpu, CREATED);
	count(cpu, SPLIT_COUNT);
	slot->record.parent = slot->record.id;
	slot->record.id = (u64)(bpf_get_smp_processor_id() + 1) << 40 | (__sync_fetch_and_add(&cpu->next_id, 1) + 1);
	slot->record.flags |= F_SPLIT;
	slot->record.segments = 1;
	slot->record.tcp_seq = seq;
	slot->record.ip_len = ip_len;
	slot->record.payload = end_seq - seq;
	slot->record.ip_id = is6 ? 0 : be16(h + 4);
	slot->record.tcp_flags = h[is6 ? 53 : 33];
	slot->end_seq = end_seq;
	slot->cover_end = slot->end_seq;
	if (has(TX_TRANSPORT) && slot->record.tx_call_len)
		segment_call(slot, whole.sk);
	if (config.snap)
		keep_bytes(slot->record.id, ref->slot, l3, skb->len - skb->data_len, slot->record.ip_len);
	cpu->cost += control.begin_ns;
	/* The last segment ends the larger packet, whose record the segments have. */
	if (end_seq == whole.end_seq)
		give_up(cpu, from, whole.ref, SPLIT_PARENTS);
	return slot;
}
