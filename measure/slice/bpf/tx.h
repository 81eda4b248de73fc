/* The way out: IP, device queue, driver. */
#pragma once
#include "gso.h"

#define TCP_SYN_SENT 2
#define SYN 0x02

/* tcp_connect() counts a SYN as sent after it has handed it down; later ones come from a timer. */
static __always_inline bool is_first_syn(const struct slice_record *record, const struct sock *sk)
{
	const struct tcp_sock *tcp;

	if (!(record->tcp_flags & SYN) || sk->__sk_common.skc_state != TCP_SYN_SENT)
		return false;
	tcp = as_tcp(sk);
	return tcp && record->tcp_seq == tcp->snd_nxt;
}

/* The first hook that sees a packet of this kernel's: whose it is, and what was stamped before there
 * was a packet. */
static __always_inline void begin_tx(struct cpu_state *cpu, const struct sk_buff *skb, u64 head, enum point point)
{
	const struct sock *sk = sock_of(skb);
	struct ref ref;
	struct slot *slot = find(head, &ref);

	slot = begin(cpu, skb, head, skb->network_header, slot, &ref, BEING_SENT);
	if (!slot) {
		cost(cpu, point, false);
		return;
	}
	set_tx_device(&slot->record, device_of(skb));
	if (sk)
		slot->record.tx_cookie = sk->__sk_common.skc_cookie.counter;
	if (slot->record.protocol == PROTOCOL_TCP) {
		if (slot->record.payload && sk && has(TX_TRANSPORT) && !find_send(slot, (u64)sk))
			slot->record.flags |= F_QUEUED;
		if (slot->record.payload && sk) {
			const struct tcp_sock *tcp = as_tcp(sk);

			if (tcp && (s32)(slot->record.tcp_seq - tcp->snd_nxt) < 0)
				slot->record.flags |= F_RETRANSMIT;
		}
		if (sk && is_first_syn(&slot->record, sk))
			on_connect(&slot->record);
	} else if (has(TX_SYSCALL) || has(TX_TRANSPORT)) {
		find_call(cpu, slot, (u64)sk);
	}
	if (slot->record.payload > 536)
		gso_register(slot, ref, skb, head);
	if (!slot->base)
		return first_stamp(cpu, slot, (u64)skb, point);
	if (!config.is_event)
		slot->record.t0_ns = slot->base;
	else
		slot->record.t0_ns = slot->last_ns;
	stamp(cpu, slot, (u64)skb, point);
}

static __always_inline void on_ip_out(struct cpu_state *cpu, const struct sk_buff *skb)
{
	begin_tx(cpu, skb, head_of(skb), TX_IP_OUT);
}

/* The packet that this buffer sends. */
static __always_inline struct slot *find_sent(struct cpu_state *cpu, u64 head, struct ref *ref)
{
	struct slot *slot = find_same(cpu, head, ref);

	return slot && !has_left(slot) ? slot : NULL;
}

#define TCP_TIME_WAIT 6
#define TCP_NEW_SYN_RECV 12

static __always_inline bool is_full(const struct sock *sk)
{
	u8 state = sk->__sk_common.skc_state;

	return state != TCP_NEW_SYN_RECV && state != TCP_TIME_WAIT;
}

static __always_inline void on_dev_queue(struct cpu_state *cpu, const struct sk_buff *skb)
{
	const struct sock *sk = sock_of(skb);
	u64 head = head_of(skb);
	struct ref ref;
	struct slot *slot = find_sent(cpu, head, &ref);

	if (slot) {
		stamp_first(cpu, slot, (u64)skb, TX_DEV_QUEUE);
		return;
	}
	/* Loaded once: of two loads, the verifier takes the second for a pointer that was not compared with 0. */
	asm volatile("" : "+r"(sk));
	/* Packets of a socket have passed IP's output; what it did not choose stays not chosen. The hook there sees
	 * nothing of sockets that are none yet, as of an answer to a SYN, or no more. */
	if (has(TX_IP_OUT) && sk && is_full(sk)) {
		cost(cpu, TX_DEV_QUEUE, false);
		return;
	}
	begin_tx(cpu, skb, head, TX_DEV_QUEUE);
}

static __always_inline void on_qdisc(struct cpu_state *cpu, const struct sk_buff *skb, enum point point)
{
	u64 head = head_of(skb);
	struct ref ref;
	struct slot *slot = find_sent(cpu, head, &ref);

	if (slot)
		stamp_first(cpu, slot, (u64)skb, point);
	else
		cost(cpu, point, false);
}

/* Whether a packet that this device sends does not come back into this kernel. */
static __always_inline bool is_way_out(const struct net_device *dev)
{
	const struct rtnl_link_ops *ops;
	u64 kind;

	if (!dev || dev->flags & IFF_LOOPBACK)
		return false;
	ops = POINTER(rtnl_link_ops, dev, rtnl_link_ops);
	if (!ops)
		return true;
	kind = peek8(ops->kind) & 0xffffffff;
	return kind == 0x006e7574 /* tun */ || kind == 0x6d6d7564 /* dumm */;
}

static __always_inline void keep_link(u32 index, u64 head, const struct sk_buff *skb)
{
	struct slice_bytes *packet = bpf_map_lookup_elem(&bytes, &index);
	u32 len = skb->network_header - skb->mac_header;

	if (!packet || packet->link_len || len == 0 || len > LINK_MAX)
		return;
	if (!bpf_probe_read_kernel(packet->link, len, (const void *)(head + skb->mac_header)))
		packet->link_len = len;
}

static __always_inline void on_driver(struct cpu_state *cpu, const struct sk_buff *skb, const struct net_device *dev)
{
	u64 head = head_of(skb);
	struct ref ref;
	struct slot *slot = find_sent(cpu, head, &ref);
	struct xmit *xmit;

	if (!slot)
		slot = split(cpu, skb, head, &ref);
	if (slot) {
		set_tx_device(&slot->record, dev);
		if (config.snap)
			keep_link(ref.slot, head, skb);
		stamp_first(cpu, slot, (u64)skb, TX_DRIVER);
		if (has(TX_DONE) && !slot->record.stamps[TX_DONE])
			__sync_fetch_and_or(&slot->state, IN_DRIVER);
	} else {
		cost(cpu, TX_DRIVER, false);
	}
	if (has(TX_DONE)) {
		/* Devices on devices: their drivers are called inside each other. */
		u32 depth = cpu->xmit_depth;

		if (depth >= XMIT_DEPTH)
			depth = 0;
		cpu->xmit_depth = depth + 1;
		xmit = &cpu->xmit[depth & (XMIT_DEPTH - 1)];
		xmit->skb = slot ? (u64)skb : 0;
		if (slot)
			xmit->ref = ref;
		return;
	}
	if (slot && (config.last_point == TX_DRIVER || (config.last_tx_point == TX_DRIVER && is_way_out(dev))))
		end(cpu, slot, ref);
}

/* The packet may be freed, or somebody else's, by now: only the number of its address is used. */
static __always_inline void on_driver_done(struct cpu_state *cpu, u64 skb, const struct net_device *dev)
{
	struct slot *slot = NULL;
	struct xmit *xmit;
	u32 depth;

	if (!cpu->xmit_depth) {
		cost(cpu, TX_DONE, false);
		return;
	}
	depth = --cpu->xmit_depth;
	if (depth < XMIT_DEPTH) {
		xmit = &cpu->xmit[depth & (XMIT_DEPTH - 1)];
		if (xmit->skb && xmit->skb == skb)
			slot = follow(xmit->ref);
	}
	if (!slot || !(slot->state & IN_DRIVER)) {
		cost(cpu, TX_DONE, false);
		return;
	}
	if (!slot->record.stamps[TX_DONE]) {
		u64 value = now();
		u32 on = bpf_get_smp_processor_id();

		/* Another processor may be stamping this packet by now: what it keeps of its last stamp is
		 * left alone unless it was ours. */
		if (slot->last_cpu == on) {
			slot->record.stamps[TX_DONE] = stamp_word(slot, value, cpu->cost, on);
			cost(cpu, TX_DONE, true);
			slot->last_cost = cpu->cost;
		} else if (config.is_event) {
			cost(cpu, TX_DONE, false);
		} else {
			u64 delta = value - slot->base;

			slot->record.stamps[TX_DONE] = (delta > 0xffffffff ? 0xffffffff : delta) |
						       INNER_OTHER_CPU << 32 | (u64)(on + 1) << 48;
			cost(cpu, TX_DONE, true);
		}
	}
	if (claim(slot)) {
		/* Its way ended meanwhile; handing over was left to us. */
		hand_over(cpu, slot, xmit->ref);
	} else if (config.last_point == TX_DONE ||
		   (!slot->record.stamps[RX_DRIVER] && !slot->record.stamps[RX_CORE] && is_way_out(dev))) {
		end(cpu, slot, xmit->ref);
	}
}
