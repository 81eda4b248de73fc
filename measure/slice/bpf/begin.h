/* The first point of a packet: who it is, whether it is chosen, and a slot for it. */
#pragma once
#include "filter.h"
#include "unplaced.h"

#define PROTOCOL_UDP 17
#define HEADERS 64

/* Which bytes of the first eight of a header stay the same on a packet's way; in memory order.
 * IPv4: not the type of service, which a queueing discipline may mark. IPv6: not the hop limit. UDP:
 * not the checksum, which may be filled in late. ICMP: not the checksum. */
#define STAYS_IPV4 0xffffffffffff00ffULL
#define STAYS_IPV6 0x00ffffffffff0f00ULL
#define STAYS_TCP 0xffffffffffffffffULL
#define STAYS_UDP 0x0000ffffffffffffULL
#define STAYS_OTHER 0xffffffff0000ffffULL

static __always_inline u16 be16(const u8 *at)
{
	return (u16)at[0] << 8 | at[1];
}

static __always_inline u32 be32(const u8 *at)
{
	return (u32)at[0] << 24 | (u32)at[1] << 16 | (u32)at[2] << 8 | at[3];
}

#define IFF_LOOPBACK 0x8

/* Whether this kernel sent the packet. What a packet socket sends over a pair of virtual devices may have passed no hook
 * of the sending side: there, what that has not counted is counted where it is received. */
enum sent_here { SENT_ELSEWHERE, BEING_SENT, SENT_HERE, SENT_OVER_LOOPBACK };

static __always_inline enum sent_here was_sent_here(const struct net_device *dev)
{
	const struct rtnl_link_ops *ops;

	if (config.tx_watched == TX_WATCHED_NOWHERE || !dev)
		return SENT_ELSEWHERE;
	if (dev->flags & IFF_LOOPBACK)
		return SENT_OVER_LOOPBACK;
	ops = POINTER(rtnl_link_ops, dev, rtnl_link_ops);
	if (config.tx_watched == TX_WATCHED_LOCAL && ops && (peek8(ops->kind) & 0xffffffffff) == 0x0068746576 /* veth */)
		return SENT_HERE;
	return SENT_ELSEWHERE;
}

/* What the sending side has counted of a packet, the receiving side does not count again. */
static __always_inline void count_first(struct cpu_state *cpu, enum counter counter, bool again)
{
	if (!again)
		count(cpu, counter);
}

/* Until its first stamp, which sets the time, the packet is too young to give way: to read the clock here as well
 * costs as much as a stamp. Stamps that count an event set no time. */
static __always_inline void not_stamped_yet(struct slot *slot)
{
	slot->last_ns = config.is_event ? bpf_ktime_get_ns() : ~0ULL;
}

/* Room for a packet in its bucket; a packet that was not seen for long gives way. */
static __always_inline struct slot *take(struct cpu_state *cpu, u64 head, struct ref *ref)
{
	u32 at = first_way(head);
	struct bucket *bucket = bucket_at(at);
	struct slot *slot;
	u64 clock;

	if (!bucket)
		return NULL;
	for (u32 way = 0; way < WAYS; way++) {
		if (bucket->heads[way] || __sync_val_compare_and_swap(&bucket->heads[way], 0, head))
			continue;
		ref->slot = at | way;
		slot = slot_at(at | way);
		if (!slot)
			return NULL;
		ref->gen = slot->gen;
		not_stamped_yet(slot);
		slot->head = head;
		return slot;
	}
	clock = bpf_ktime_get_ns();
	for (u32 way = 0; way < WAYS; way++) {
		u64 old = bucket->heads[way];

		slot = slot_at(at | way);
		if (!slot || !old || clock < slot->last_ns || clock - slot->last_ns < config.age_ns)
			continue;
		if (__sync_val_compare_and_swap(&bucket->heads[way], old, head) != old)
			continue;
		/* It ends at this very moment after all: its end frees the place. */
		ref->slot = at | way;
		ref->gen = slot->gen;
		if (!take_over(slot, *ref))
			continue;
		slot->state = 0;
		not_stamped_yet(slot);
		slot->head = head;
		ref->gen += 2;
		*(volatile u32 *)&slot->gen = ref->gen;
		count(cpu, AGED);
		return slot;
	}
	return NULL;
}

/* The same for a packet without a record. Over a loopback device all packets have passed the sending side. */
static __always_inline struct slot *take_first(struct cpu_state *cpu, u64 head, struct ref *ref, enum sent_here sent)
{
	struct slot *slot = take(cpu, head, ref);
	bool is_counted = sent >= SENT_HERE && was_unplaced(head);

	if (sent >= SENT_HERE && !is_counted && (slot || sent == SENT_HERE))
		count(cpu, SEEN);
	if (slot && is_counted)
		count(cpu, PLACED_LATE);
	if (slot)
		return slot;
	if (sent == BEING_SENT)
		no_slot(cpu, head);
	else if (sent == SENT_ELSEWHERE || (sent == SENT_HERE && !is_counted))
		count(cpu, NO_SLOT);
	return NULL;
}

static __always_inline void clear(struct slice_record *record)
{
	/* All but the addresses and the fields that every packet has. */
	record->parent = 0;
	record->tx_cookie = 0;
	record->rx_cookie = 0;
	record->tx_tgid = 0;
	record->tx_tid = 0;
	record->rx_tgid = 0;
	record->rx_tid = 0;
	record->tx_ifindex = 0;
	record->rx_ifindex = 0;
	record->tx_netns = 0;
	record->rx_netns = 0;
	record->drop_reason = 0;
	record->flags = 0;
	record->tx_call_seq = 0;
	record->rx_call_seq = 0;
	record->rx_returned = 0;
	record->segments = 0;
	record->tx_call_len = 0;
	record->reserved = 0;
	record->stamps_taken = 0;
	__builtin_memset(record->tx_comm, 0, 16);
	__builtin_memset(record->rx_comm, 0, 16);
	__builtin_memset(record->stamps, 0, sizeof(record->stamps));
}

static __always_inline u32 netns_of(const struct net_device *dev)
{
	return dev ? POINTER(net, dev, nd_net.net)->ns.inum : 0;
}

static __always_inline void set_tx_device(struct slice_record *record, const struct net_device *dev)
{
	if (record->tx_ifindex || !dev)
		return;
	record->tx_ifindex = dev->ifindex;
	record->tx_netns = netns_of(dev);
}

static __always_inline void set_rx_device(struct slice_record *record, const struct net_device *dev)
{
	if (!dev)
		return;
	record->rx_ifindex = dev->ifindex;
	record->rx_netns = netns_of(dev);
}

static __always_inline void keep_bytes(u64 id, u32 index, const u8 *l3, u32 linear, u32 wire_len)
{
	struct slice_bytes *packet = bpf_map_lookup_elem(&bytes, &index);
	u32 len = linear < config.snap ? linear : config.snap;

	if (!packet)
		return;
	packet->id = id | BYTES_ENTRY;
	packet->wire_len = wire_len;
	packet->link_len = 0;
	packet->captured = 0;
	if (len > SNAP_MAX)
		len = SNAP_MAX;
	if (!bpf_probe_read_kernel(packet->bytes, len, l3))
		packet->captured = len;
}

/* What of the packet's kept bytes lies in pages outside its buffer. Only programs of sockets' filters can
 * read those. */
static __always_inline void keep_pages(struct __sk_buff *ctx, const struct sk_buff *skb)
{
	u64 head = head_of(skb);
	u32 want, index;
	struct ref ref;
	struct slot *slot = find(head, &ref);
	struct slice_bytes *packet;

	if (!slot)
		return;
	index = ref.slot;
	packet = bpf_map_lookup_elem(&bytes, &index);
	if (!packet || packet->id != (slot->record.id | BYTES_ENTRY))
		return;
	want = packet->wire_len < config.snap ? packet->wire_len : config.snap;
	if (want <= packet->captured || want > SNAP_MAX)
		return;
	if (!bpf_skb_load_bytes(ctx, 0, packet->bytes, want))
		packet->captured = want;
}

/* Whether the packet is of the interface and namespace that are asked for. */
static __always_inline bool is_here(const struct net_device *dev)
{
	if (config.ifindex && (!dev || (u32)dev->ifindex != config.ifindex))
		return false;
	if (config.netns && netns_of(dev) != config.netns)
		return false;
	return true;
}

/* Asks the filter; counts a packet that is not chosen. */
static __always_inline bool is_chosen(struct cpu_state *cpu, const u8 *l3, u32 linear, u32 wire_len, bool again)
{
	bool chosen = false, is_cut = false;
	struct filter_room *room;
	u32 taken;

	room = take_room(cpu, &taken);
	if (!room) {
		count_first(cpu, UNREADABLE, again);
		return false;
	}
	if (bpf_probe_read_kernel(room->packet, FILTER_REACH, l3))
		is_cut = true;
	else
		chosen = filter(room, linear < FILTER_REACH ? linear : FILTER_REACH, wire_len, &is_cut);
	give_room(cpu, taken);
	if (!chosen)
		count_first(cpu, is_cut ? UNREADABLE : UNMATCHED, again);
	return chosen;
}

/* `off3`: of the network header from `head`. `existing`: what lies in the slot of this buffer; it is
 * over, since the buffer holds another packet now, unless its data were merged into another buffer. Where this kernel
 * sent the packet before, its sending side was not followed. Counts whatever comes of the packet; the caller
 * counts the cost of the hit. */
static __always_inline struct slot *begin(struct cpu_state *cpu, const struct sk_buff *skb, u64 head, u16 off3,
					  struct slot *existing, struct ref *ref, enum sent_here sent)
{
	bool again = sent >= SENT_HERE;
	const u8 *l3 = (const u8 *)(head + off3);
	u32 data_off = (u32)(data_of(skb) - head);
	u32 wire_len = skb->len + data_off - off3;
	u32 linear = wire_len - skb->data_len;
	u8 h[HEADERS];
	struct slice_record *record;
	struct slot *slot;
	u32 at, payload;
	u8 protocol;
	u16 l4;
	bool is6, chosen;

	if (existing) {
		if (existing->is_kept)
			orphan(head, ref->slot);
		else if (has(TX_DONE) && claim(existing))
			hand_over(cpu, existing, *ref);
		else
			give_up(cpu, existing, *ref, STALE_ENDED);
	}
	count_first(cpu, SEEN, again);
	if (!is_here(device_of(skb)) && control.choose == CHOOSE_ASKED) {
		count_first(cpu, UNMATCHED, again);
		return NULL;
	}
	/* Behind the linear part lies the buffer's own book-keeping, which is longer than this: what is
	 * read beyond the packet is never looked at, and reading it is never a fault. */
	if (linear < 20 || bpf_probe_read_kernel(h, HEADERS, l3)) {
		count_first(cpu, UNREADABLE, again);
		return NULL;
	}
	is6 = h[0] >> 4 == 6;
	if (is6) {
		protocol = h[6];
		l4 = 40;
	} else if (h[0] >> 4 == 4) {
		protocol = h[9];
		l4 = (h[0] & 15) * 4;
		if (l4 != 20 && l4 > 44) {
			/* More options than are read here. */
			count_first(cpu, UNREADABLE, again);
			return NULL;
		}
	} else {
		count_first(cpu, UNREADABLE, again);
		return NULL;
	}
	if (l4 + 8u > linear) {
		count_first(cpu, UNREADABLE, again);
		return NULL;
	}
	chosen = !config.has_filter || is_chosen(cpu, l3, linear, wire_len, again);
	if (control.choose != CHOOSE_ASKED)
		chosen = control.choose == CHOOSE_OWN && netns_of(device_of(skb)) == control.choose_netns;
	if (!chosen)
		return NULL;
	slot = take_first(cpu, head, ref, sent);
	if (!slot) {
		if (sent == BEING_SENT && protocol == PROTOCOL_TCP)
			unplaced_parent(skb, head, l3, l4, is6, wire_len);
		return NULL;
	}
	count(cpu, CREATED);
	record = &slot->record;
	clear(record);
	if (again) {
		count(cpu, TX_UNSEEN);
		record->flags |= F_TX_UNSEEN;
	}
	record->id = (u64)(bpf_get_smp_processor_id() + 1) << 40 | (__sync_fetch_and_add(&cpu->next_id, 1) + 1);
	record->family = is6 ? 6 : 4;
	record->protocol = protocol;
	if (is6) {
		__builtin_memcpy(record->source, h + 8, 16);
		__builtin_memcpy(record->destination, h + 24, 16);
		record->ip_id = 0;
	} else {
		__builtin_memset(record->source, 0, 32);
		__builtin_memcpy(record->source, h + 12, 4);
		__builtin_memcpy(record->destination, h + 16, 4);
		record->ip_id = be16(h + 4);
	}
	record->ip_len = wire_len;
	/* The compiler knows that it is no more and would leave the check out; the verifier of 6.1 has
	 * forgotten by now. */
	at = l4;
	asm volatile("" : "+r"(at));
	if (at > HEADERS - 20)
		at = HEADERS - 20;
	payload = wire_len - l4;
	record->source_port = 0;
	record->destination_port = 0;
	record->tcp_seq = 0;
	record->tcp_ack = 0;
	record->tcp_flags = 0;
	record->tcp_window = 0;
	slot->mask4 = STAYS_OTHER;
	if (protocol == PROTOCOL_TCP || protocol == PROTOCOL_UDP) {
		record->source_port = be16(h + at);
		record->destination_port = be16(h + at + 2);
		payload = payload > 8 ? payload - 8 : 0;
		slot->mask4 = STAYS_UDP;
	}
	if (protocol == PROTOCOL_TCP) {
		u32 header = (h[at + 12] >> 4) * 4;

		record->tcp_seq = be32(h + at + 4);
		record->tcp_ack = be32(h + at + 8);
		record->tcp_flags = h[at + 13];
		record->tcp_window = be16(h + at + 14);
		payload = wire_len - l4 > header ? wire_len - l4 - header : 0;
		slot->mask4 = STAYS_TCP;
		if (!payload)
			record->flags |= F_NO_PAYLOAD;
	}
	record->payload = payload;
	slot->off3 = off3;
	slot->off4 = off3 + l4;
	slot->mask3 = is6 ? STAYS_IPV6 : STAYS_IPV4;
	slot->id3 = *(u64 *)h & slot->mask3;
	slot->id4 = peek8(l3 + l4) & slot->mask4;
	/* SYN and FIN take a number each and are nobody's to copy. */
	slot->end_seq = record->tcp_seq + payload;
	slot->cover_end = slot->end_seq;
	slot->wake_tid = 0;
	slot->is_kept = 0;
	slot->precopy_point = NO_POINT;
	slot->last_delta = 0;
	slot->merged.gen = ENDING;
	slot->state = 0;
	slot->base = 0;
	if (config.snap)
		keep_bytes(record->id, ref->slot, l3, linear, wire_len);
	cpu->cost += control.begin_ns;
	return slot;
}

/* The packet's first stamp: the clock starts here. */
static __always_inline void first_stamp(struct cpu_state *cpu, struct slot *slot, u64 skb, enum point point)
{
	u64 value = now();

	slot->base = value;
	slot->record.t0_ns = config.is_event ? bpf_ktime_get_ns() : value;
	slot->last_cost = cpu->cost;
	slot->last_cpu = bpf_get_smp_processor_id();
	slot->last_ns = slot->record.t0_ns;
	slot->last_point = point;
	slot->skb = skb;
	slot->record.stamps[point] = stamp_word(slot, value, cpu->cost, slot->last_cpu);
	cost(cpu, point, true);
	slot->last_cost = cpu->cost;
}
