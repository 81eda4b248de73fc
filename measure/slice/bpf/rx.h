/* The way in: driver, core, IP, transport, the socket's queue, the reader. */
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

	/* A packet that was received already has left its buffer to this one. */
	if (slot && slot->last_point >= RX_IP)
		slot = NULL;
	if (slot) {
		set_rx_device(&slot->record, skb->dev);
		stamp(cpu, slot, (u64)skb, RX_DRIVER);
	} else {
		slot = begin(cpu, skb, head, (u16)(data_of(skb) - head), find(head, &ref), &ref);
		if (!slot) {
			cost(cpu, RX_DRIVER, false);
			return;
		}
		set_rx_device(&slot->record, skb->dev);
		first_stamp(cpu, slot, (u64)skb, RX_DRIVER);
	}
	slot->is_kept = is_gro;
	if (is_gro)
		cpu->gro[cpu->gro_head++ & (GRO_KEPT - 1)] = ref;
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
				slot->record.flags |= F_MERGED;
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
			set_rx_device(&slot->record, skb->dev);
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
	slot = begin(cpu, skb, head, (u16)(data_of(skb) - head), find(head, &ref), &ref);
	if (!slot) {
		cost(cpu, RX_CORE, false);
		return;
	}
	set_rx_device(&slot->record, skb->dev);
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

/* Remembers the packet until its socket's reader has copied it. TCP holds the socket's lock; UDP does
 * not, and what two processors enter at once may be lost here: such packets end without a reader. */
static __always_inline void enqueue(struct cpu_state *cpu, struct slot *slot, struct ref ref, u64 sk, u64 cookie)
{
	struct receiver *receiver = receiver_of(sk);
	u32 at, on = bpf_get_smp_processor_id();

	if (!receiver)
		return;
	if (receiver->sk != sk || receiver->cookie != cookie || receiver->epoch != cpu->epoch ||
	    receiver->ports != ports_of(slot)) {
		if (receiver->sk != sk && receiver->epoch == cpu->epoch && receiver->head != receiver->tail) {
			struct slot *other = follow(receiver->queue[receiver->tail & (QUEUE - 1)].ref);

			if (other && slot->last_ns - other->last_ns < config.age_ns) {
				count(cpu, QUEUE_FULL);
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
	if (receiver->head - receiver->tail >= QUEUE) {
		count(cpu, QUEUE_FULL);
		return;
	}
	at = receiver->head & (QUEUE - 1);
	if (receiver->head != receiver->tail &&
	    (s32)(slot->end_seq - receiver->queue[(receiver->head - 1) & (QUEUE - 1)].end_seq) < 0)
		receiver->is_unsorted = 1;
	/* Two processors that deliver to one UDP socket may pass the hook in another order than the queue. */
	if (receiver->head != receiver->tail && receiver->last_cpu != on)
		receiver->is_ambiguous = 1;
	if (receiver->head == receiver->tail)
		receiver->is_ambiguous = 0;
	receiver->last_cpu = on;
	slot->is_kept = 1;
	receiver->queue[at].ref = ref;
	receiver->queue[at].end_seq = slot->end_seq;
	receiver->queue[at].seq = slot->record.tcp_seq;
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
			enqueue(cpu, slot, ref, (u64)sk, slot->record.rx_cookie);
		return;
	}
	if (config.last_point == RX_IP) {
		end(cpu, slot, ref);
		return;
	}
	if (slot->record.protocol == PROTOCOL_UDP && sk && config.udp_in_order && !has(RX_SOCKET))
		enqueue(cpu, slot, ref, (u64)sk, slot->record.rx_cookie);
}

struct gro_walk {
	u32 seq, end_seq;
	u64 id4;
	u64 sk, cookie;
};

/* Segments that GRO merged into the packet before us go into the socket's queue after it. */
static long gro_merged(u32 back, struct gro_walk *walk)
{
	struct cpu_state *cpu = this_cpu();
	struct slot *slot;
	struct ref ref;

	if (!cpu)
		return 1;
	/* Oldest first. */
	ref = cpu->gro[(cpu->gro_head + back) & (GRO_KEPT - 1)];
	slot = follow(ref);
	if (!slot || slot->last_point != RX_DRIVER || (u32)slot->id4 != (u32)walk->id4)
		return 0;
	if ((s32)(slot->record.tcp_seq - walk->seq) <= 0 || (s32)(walk->end_seq - slot->record.tcp_seq) <= 0)
		return 0;
	slot->record.flags |= F_MERGED;
	count(cpu, MERGED_COUNT);
	enqueue(cpu, slot, ref, walk->sk, walk->cookie);
	return 0;
}

/* TCP has the packet. Established connections only: before that there is no hook. */
static __always_inline void on_rx_tcp(struct cpu_state *cpu, const struct sk_buff *skb, const struct sock *sk)
{
	u64 head = head_of(skb);
	struct ref ref;
	struct slot *slot = find_same(cpu, head, &ref);

	if (!slot) {
		cost(cpu, RX_TRANSPORT, false);
		return;
	}
	stamp(cpu, slot, (u64)skb, RX_TRANSPORT);
	received_by(cpu, slot, ref, sk);
	if (slot->record.flags & F_NO_PAYLOAD || config.last_point == RX_TRANSPORT) {
		end(cpu, slot, ref);
		return;
	}
	enqueue(cpu, slot, ref, (u64)sk, slot->record.rx_cookie);
	if (slot->record.flags & F_MERGED) {
		/* From the length that GRO wrote. */
		struct gro_walk walk = {
			.seq = slot->record.tcp_seq,
			.id4 = slot->id4,
			.sk = (u64)sk,
			.cookie = slot->record.rx_cookie,
		};
		u32 header = slot->record.ip_len - slot->record.payload;
		u32 whole = skb->len + (u32)(data_of(skb) - head) - slot->off3;

		walk.end_seq = walk.seq + whole - header;
		slot->cover_end = walk.end_seq;
		bpf_loop(GRO_KEPT, gro_merged, &walk, 0);
	}
}

static __always_inline void on_socket(struct cpu_state *cpu, const struct sock *sk)
{
	struct slot *slot = cpu->rx_sk == (u64)sk ? follow(cpu->rx) : NULL;

	cpu->ready_set = 0;
	if (!slot || slot->record.stamps[RX_SOCKET]) {
		cost(cpu, RX_SOCKET, false);
		return;
	}
	stamp(cpu, slot, slot->skb, RX_SOCKET);
	if (config.last_point == RX_SOCKET) {
		end(cpu, slot, cpu->rx);
		return;
	}
	if (slot->record.protocol == PROTOCOL_UDP && config.udp_in_order)
		enqueue(cpu, slot, cpu->rx, (u64)sk, slot->record.rx_cookie);
	cpu->ready = cpu->rx;
	cpu->ready_set = 1;
}

/* A socket wakes its reader before it does anything else: a thread that is woken after another hook was
 * reached on this processor is woken by something else. */
static __always_inline void nobody_woken(struct cpu_state *cpu)
{
	cpu->ready_set = 0;
}

static __always_inline struct woken *woken_of(u32 tid)
{
	u32 at = tid & (WOKEN - 1);

	return bpf_map_lookup_elem(&woken, &at);
}

/* The first thread that is woken after a socket said that it has data. */
static __always_inline void on_waking(struct cpu_state *cpu, const struct task_struct *task)
{
	struct slot *slot;
	struct woken *entry;
	u32 tid = task->pid;

	if (!cpu->ready_set) {
		cost(cpu, RX_WAKING, false);
		return;
	}
	cpu->ready_set = 0;
	slot = follow(cpu->ready);
	entry = woken_of(tid);
	if (!slot || !entry) {
		cost(cpu, RX_WAKING, false);
		return;
	}
	slot->wake_tid = tid;
	entry->tid = tid;
	entry->epoch = cpu->epoch;
	entry->ref = cpu->ready;
	stamp(cpu, slot, slot->skb, RX_WAKING);
}

static __always_inline void on_switch(struct cpu_state *cpu, const struct task_struct *next)
{
	u32 tid = next->pid;
	struct woken *entry = tid ? woken_of(tid) : NULL;
	struct slot *slot;

	nobody_woken(cpu);
	if (!entry || entry->tid != tid || entry->epoch != cpu->epoch) {
		cost(cpu, RX_SCHED_IN, false);
		return;
	}
	entry->tid = 0;
	slot = follow(entry->ref);
	if (!slot || slot->wake_tid != tid || slot->record.stamps[RX_SCHED_IN]) {
		cost(cpu, RX_SCHED_IN, false);
		return;
	}
	stamp(cpu, slot, slot->skb, RX_SCHED_IN);
}
