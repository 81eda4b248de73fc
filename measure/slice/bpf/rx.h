/* The way in: driver, core, IP, transport, the socket's queue. */
#pragma once
#include "tx.h"

#define TCP_ESTABLISHED 1

static __always_inline u64 cookie_of(const struct sock *sk)
{
	return sk ? sk->__sk_common.skc_cookie.counter : 0;
}

static __always_inline struct receiver *receiver_of(u64 sk)
{
	u32 at = hash_pointer(sk) & (SOCKETS - 1);

	return bpf_map_lookup_elem(&receivers, &at);
}

/* `is_gro`: GRO may merge the packet with others before the core sees it. */
static __always_inline void on_rx_driver(struct cpu_state *cpu, const struct sk_buff *skb, bool is_gro)
{
	u64 head = head_of(skb);
	struct ref ref;
	struct slot *slot = find_same(cpu, head, &ref);

	if (slot && has_left(slot))
		slot = NULL;
	if (slot) {
		set_rx_device(&slot->record, device_of(skb));
		stamp(cpu, slot, (u64)skb, RX_DRIVER);
	} else {
		slot = begin(cpu, skb, head, (u16)(data_of(skb) - head), find(head, &ref), &ref, was_sent_here(device_of(skb)));
		if (!slot) {
			cost(cpu, RX_DRIVER, false);
			return;
		}
		set_rx_device(&slot->record, device_of(skb));
		first_stamp(cpu, slot, (u64)skb, RX_DRIVER);
	}
	slot->is_kept = is_gro;
	if (is_gro)
		cpu->gro[cpu->gro_head++ & (GRO_KEPT - 1)] = ref;
}

struct gro_walk {
	struct ref first, last;
	u32 ports, next_seq, end_seq;
	bool is_behind;
};

/* Segments come in order, and behind the one that the others were merged into: of two with the same bytes,
 * the first. Oldest first. */
static long gro_merged(u32 back, struct gro_walk *walk)
{
	struct cpu_state *cpu = this_cpu();
	struct slot *slot, *last;
	struct ref ref;

	if (!cpu || walk->next_seq == walk->end_seq)
		return 1;
	ref = cpu->gro[(cpu->gro_head + back) & (GRO_KEPT - 1)];
	if (!walk->is_behind) {
		walk->is_behind = ref.slot == walk->first.slot && ref.gen == walk->first.gen;
		return 0;
	}
	slot = follow(ref);
	last = slot_at(walk->last.slot);
	if (!slot || !last || slot->last_point != RX_DRIVER || slot->record.flags & F_MERGED ||
	    (u32)slot->id4 != walk->ports || slot->record.tcp_seq != walk->next_seq)
		return 0;
	slot->record.flags |= F_MERGED;
	count(cpu, MERGED_COUNT);
	last->merged = ref;
	walk->last = ref;
	walk->next_seq = slot->end_seq;
	return 0;
}

/* Where the data end that lie in the packet's buffer by now. */
static __always_inline u32 end_of(const struct slot *slot, const struct sk_buff *skb, u64 head)
{
	u32 header = slot->record.ip_len - slot->record.payload;
	u32 whole = skb->len + (u32)(data_of(skb) - head) - slot->off3;

	return slot->record.tcp_seq + whole - header;
}

/* GRO made one of several; this is the first. */
static __always_inline void merge(struct slot *slot, struct ref ref, const struct sk_buff *skb, u64 head)
{
	struct gro_walk walk = { .first = ref, .last = ref, .ports = slot->id4, .next_seq = slot->end_seq };

	walk.end_seq = end_of(slot, skb, head);
	slot->cover_end = walk.end_seq;
	slot->record.flags |= F_MERGED;
	if (slot->record.protocol == PROTOCOL_TCP)
		bpf_loop(GRO_KEPT, gro_merged, &walk, 0);
}

static __always_inline void on_rx_core(struct cpu_state *cpu, const struct sk_buff *skb)
{
	u64 head = head_of(skb);
	struct ref ref;
	struct slot *slot = find(head, &ref);

	cpu->ready_set = 0;
	if (slot) {
		u64 id4 = peek8((void *)(head + slot->off4)) & slot->mask4;
		u64 id3 = peek8((void *)(head + slot->off3)) & slot->mask3;

		/* GRO writes the length of what it merged into the first one's header. */
		if (id4 == slot->id4 && id3 != slot->id3 && slot->last_point == RX_DRIVER) {
			u16 segments = 0;
			const struct skb_shared_info *shared = (const void *)(head + skb->end);

			bpf_core_read(&segments, sizeof(segments), &shared->gso_segs);
			if (segments > 1) {
				slot->id3 = id3;
				slot->record.segments = segments;
				merge(slot, ref, skb, head);
			}
		}
		if (id4 != slot->id4 || id3 != slot->id3) {
			count(cpu, STALE_REFUSED);
			slot = NULL;
		}
	}
	if (slot && slot->last_point >= RX_IP)
		slot = NULL;
	if (slot) {
		if (!slot->record.rx_ifindex)
			set_rx_device(&slot->record, device_of(skb));
		if (config.snap)
			keep_link(ref.slot, head, skb);
		slot->is_kept = 0;
		stamp(cpu, slot, (u64)skb, RX_CORE);
		return;
	}
	/* What the driver's hook did not choose stays not chosen. */
	if (has(RX_DRIVER) || has(TX_IP_OUT)) {
		cost(cpu, RX_CORE, false);
		return;
	}
	slot = begin(cpu, skb, head, (u16)(data_of(skb) - head), find(head, &ref), &ref, was_sent_here(device_of(skb)));
	if (!slot) {
		cost(cpu, RX_CORE, false);
		return;
	}
	set_rx_device(&slot->record, device_of(skb));
	first_stamp(cpu, slot, (u64)skb, RX_CORE);
}

/* The ports of a packet that this socket is to receive: an address in memory becomes another socket's. UDP's
 * socket may have any number of peers. */
static __always_inline u32 ports_of(const struct slot *slot)
{
	u32 ports = slot->record.destination_port;

	return slot->record.protocol == PROTOCOL_TCP ? ports | (u32)slot->record.source_port << 16 : ports;
}

static __always_inline bool is_its(const struct cpu_state *cpu, const struct receiver *receiver, const struct sock *sk)
{
	u32 ports = sk->__sk_common.skc_num;

	if (receiver->sk != (u64)sk || receiver->epoch != cpu->epoch)
		return false;
	if (sk->sk_protocol == PROTOCOL_TCP)
		ports |= (u32)__builtin_bswap16(sk->__sk_common.skc_dport) << 16;
	return receiver->ports == ports;
}

struct twin_walk {
	u64 sk;
	u32 at, seq, end_seq, rcv_nxt;
	bool is_there;
};

/* What TCP sends again may be in the queue already, unread. Of two packets with the same bytes it reads one:
 * the first, or the one that covers another that still waited for bytes before it. */
static long twin(u32 i, struct twin_walk *walk)
{
	struct cpu_state *cpu = this_cpu();
	struct receiver *receiver = receiver_of(walk->sk);
	u32 at = (walk->at + i) & (QUEUE - 1), seq, end_seq;
	struct slot *slot;
	struct ref ref;

	if (!cpu || !receiver)
		return 1;
	ref = receiver->queue[at].ref;
	seq = receiver->queue[at].seq;
	end_seq = receiver->queue[at].end_seq;
	slot = follow(ref);
	if (!slot)
		return 0;
	if ((s32)(walk->seq - seq) >= 0 && (s32)(end_seq - walk->end_seq) >= 0) {
		walk->is_there = true;
		return 1;
	}
	if ((s32)(seq - walk->seq) >= 0 && (s32)(walk->end_seq - end_seq) >= 0 &&
	    (s32)(end_seq - walk->rcv_nxt) > 0) {
		receiver->queue[at].ref.gen = ~0;
		end(cpu, slot, ref);
	}
	return 0;
}

static __always_inline bool has_twin(const struct receiver *receiver, const struct slot *slot, u32 rcv_nxt)
{
	struct twin_walk walk = {
		.sk = receiver->sk,
		.at = receiver->tail,
		.seq = slot->record.tcp_seq,
		.end_seq = slot->end_seq,
		.rcv_nxt = rcv_nxt,
	};
	u32 pending = receiver->head - receiver->tail;

	if (slot->record.protocol != PROTOCOL_TCP || !pending ||
	    (s32)(walk.seq - receiver->queue[(receiver->head - 1) & (QUEUE - 1)].end_seq) >= 0)
		return false;
	bpf_loop(pending < QUEUE ? pending : QUEUE, twin, &walk, 0);
	return walk.is_there;
}

/* TCP's reader finds the packet by its buffer, too. Of UDP nothing tells when it will be read, and its slot is needed. */
static __always_inline void not_remembered(struct cpu_state *cpu, struct slot *slot, struct ref ref)
{
	if (slot->record.protocol == PROTOCOL_UDP)
		give_up(cpu, slot, ref, QUEUE_FULL);
}

/* Remembers the packet until its socket's reader has copied it. TCP holds the socket's lock; UDP does
 * not, and what two processors enter at once may be lost here: such packets end without a reader. */
static __always_inline void enqueue(struct cpu_state *cpu, struct slot *slot, struct ref ref, u64 sk, u64 cookie,
				    u32 rcv_nxt)
{
	struct receiver *receiver = receiver_of(sk);
	bool is_udp = slot->record.protocol == PROTOCOL_UDP;
	u32 at, on = bpf_get_smp_processor_id();

	if (!receiver)
		return;
	if (receiver->sk != sk || receiver->cookie != cookie || receiver->epoch != cpu->epoch ||
	    receiver->ports != ports_of(slot)) {
		if (receiver->sk != sk && receiver->epoch == cpu->epoch && receiver->head != receiver->tail) {
			struct slot *other = follow(receiver->queue[receiver->tail & (QUEUE - 1)].ref);

			if (other && slot->last_ns - other->last_ns < config.age_ns) {
				not_remembered(cpu, slot, ref);
				return;
			}
		}
		receiver->sk = sk;
		receiver->cookie = cookie;
		receiver->epoch = cpu->epoch;
		receiver->ports = ports_of(slot);
		receiver->tail = receiver->head;
		receiver->is_unsorted = 0;
		receiver->is_ambiguous = 0;
	}
	/* Two processors that deliver to one UDP socket may pass the hook in another order than the queue. */
	if (receiver->head == receiver->tail)
		receiver->is_ambiguous = 0;
	else if (receiver->last_cpu != on)
		receiver->is_ambiguous = 1;
	receiver->last_cpu = on;
	at = receiver->head & (QUEUE - 1);
	/* Of UDP, packets that are not remembered have their places in the socket's queue between others that are. */
	if (receiver->head - receiver->tail >= QUEUE && (!is_udp || follow(receiver->queue[at].ref))) {
		receiver->head += is_udp;
		not_remembered(cpu, slot, ref);
		return;
	}
	if (has_twin(receiver, slot, rcv_nxt)) {
		/* Dropped by TCP; but of what GRO merged, no hook sees that. */
		if (slot->record.flags & F_MERGED && slot->cover_end == slot->end_seq)
			end(cpu, slot, ref);
		return;
	}
	if (receiver->head != receiver->tail && !is_udp &&
	    (s32)(slot->end_seq - receiver->queue[(receiver->head - 1) & (QUEUE - 1)].end_seq) < 0) {
		receiver->is_unsorted = 1;
		slot->record.flags |= F_REORDERED;
		count(cpu, REORDERED);
	}
	slot->is_kept = 1;
	receiver->queue[at].ref = ref;
	receiver->queue[at].end_seq = slot->end_seq;
	receiver->queue[at].seq = is_udp ? receiver->head : slot->record.tcp_seq;
	receiver->head++;
}

static __always_inline void received_by(struct cpu_state *cpu, struct slot *slot, struct ref ref, const struct sock *sk)
{
	slot->record.rx_cookie = cookie_of(sk);
	cpu->rx_sk = (u64)sk;
	cpu->rx = ref;
	cpu->ready_set = 0;
}

/* IP's input is done, and this is the socket. */
static __always_inline void on_rx_ip(struct cpu_state *cpu, const struct sk_buff *skb, const struct sock *sk)
{
	u64 head = head_of(skb);
	struct ref ref;
	struct slot *slot = find_same(cpu, head, &ref);

	if (!slot) {
		cost(cpu, RX_IP, false);
		return;
	}
	stamp(cpu, slot, (u64)skb, RX_IP);
	/* TCP may put it aside while the socket is in use, and tell its reader of an earlier one meanwhile. */
	if (slot->record.protocol == PROTOCOL_TCP && sk && sk->__sk_common.skc_state == TCP_ESTABLISHED &&
	    has(RX_TRANSPORT))
		slot->record.rx_cookie = cookie_of(sk);
	else
		received_by(cpu, slot, ref, sk);
	if (slot->record.protocol == PROTOCOL_TCP && sk &&
	    (sk->__sk_common.skc_state != TCP_ESTABLISHED || !has(RX_TRANSPORT))) {
		if (slot->record.flags & F_NO_PAYLOAD)
			end(cpu, slot, ref);
		else
			enqueue(cpu, slot, ref, (u64)sk, slot->record.rx_cookie, slot->record.tcp_seq);
		return;
	}
	if (config.last_point == RX_IP) {
		end(cpu, slot, ref);
		return;
	}
	if (slot->record.protocol == PROTOCOL_UDP && sk && config.udp_in_order && !has(RX_SOCKET))
		enqueue(cpu, slot, ref, (u64)sk, slot->record.rx_cookie, 0);
}

/* TCP has all of its bytes already and reads none of them from here. */
static __always_inline bool is_old(const struct slot *slot, u32 rcv_nxt)
{
	return (s32)(slot->end_seq - rcv_nxt) <= 0;
}

/* Puts those that GRO merged into a packet into the socket's queue, behind it. */
struct merged_walk {
	struct ref ref;
	u64 sk, cookie;
	u32 rcv_nxt;
	bool is_ahead;
};

/* TCP keeps it in its out-of-order queue until the bytes before it are there. */
static __always_inline void out_of_order(struct cpu_state *cpu, struct slot *slot)
{
	slot->record.flags |= F_OFO_QUEUED;
	count(cpu, OFO_QUEUED);
}

static long enqueue_merged(u32 i, struct merged_walk *walk)
{
	struct cpu_state *cpu = this_cpu();
	struct slot *slot = follow(walk->ref);
	struct ref ref = walk->ref;

	if (!cpu || !slot)
		return 1;
	walk->ref = slot->merged;
	if (walk->is_ahead)
		out_of_order(cpu, slot);
	/* Its bytes came before, and no hook will see it go. */
	if (is_old(slot, walk->rcv_nxt))
		end(cpu, slot, ref);
	else
		enqueue(cpu, slot, ref, walk->sk, walk->cookie, walk->rcv_nxt);
	return 0;
}

/* TCP has the packet. Established connections only: before that there is no hook. */
static __always_inline void on_rx_tcp(struct cpu_state *cpu, const struct sk_buff *skb, const struct sock *sk)
{
	const struct tcp_sock *tcp = as_tcp(sk);
	u64 head = head_of(skb);
	struct ref ref;
	struct slot *slot = find_same(cpu, head, &ref);
	struct merged_walk walk = {};
	bool is_merged;
	u32 rcv_nxt;

	if (!slot) {
		/* What this packet does to the socket is not another's. */
		cpu->rx_sk = 0;
		cost(cpu, RX_TRANSPORT, false);
		return;
	}
	stamp(cpu, slot, (u64)skb, RX_TRANSPORT);
	received_by(cpu, slot, ref, sk);
	if (slot->record.flags & F_NO_PAYLOAD || config.last_point == RX_TRANSPORT) {
		end(cpu, slot, ref);
		return;
	}
	rcv_nxt = slot->record.tcp_seq;
	/* One load of either pointer is not allowed. */
	asm volatile("" : "+r"(rcv_nxt));
	if (tcp)
		rcv_nxt = tcp->rcv_nxt;
	walk.ref = slot->merged;
	walk.sk = (u64)sk;
	walk.cookie = slot->record.rx_cookie;
	walk.rcv_nxt = rcv_nxt;
	walk.is_ahead = (s32)(slot->record.tcp_seq - rcv_nxt) > 0;
	is_merged = slot->cover_end != slot->end_seq;
	if (walk.is_ahead)
		out_of_order(cpu, slot);
	/* The buffer goes on without it, for what GRO or the socket's backlog merged into it. Where all of that is
	 * old too, TCP drops the buffer. */
	if (!is_old(slot, rcv_nxt))
		enqueue(cpu, slot, ref, (u64)sk, walk.cookie, rcv_nxt);
	else if ((s32)(end_of(slot, skb, head) - rcv_nxt) > 0)
		end(cpu, slot, ref);
	/* The slot may be another packet's by now. */
	if (is_merged)
		bpf_loop(GRO_KEPT, enqueue_merged, &walk, 0);
}
