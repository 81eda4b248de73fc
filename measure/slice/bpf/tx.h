/* The way out: sockets, IP, device queue, driver. */
#pragma once
#include "begin.h"

#define IFF_LOOPBACK 0x8

static __always_inline struct call *call_of(u32 tid)
{
	u32 at = tid & (CALLS - 1);

	return bpf_map_lookup_elem(&calls, &at);
}

/* Of this thread, and not one that began before hooks were off. */
static __always_inline bool is_of(const struct cpu_state *cpu, const struct call *call, u32 tid)
{
	return call->tid == tid && call->epoch == cpu->epoch;
}

static __always_inline struct sender *sender_of(u64 sk)
{
	u32 at = hash_pointer(sk) & (SOCKETS - 1);

	return bpf_map_lookup_elem(&senders, &at);
}

static __always_inline bool is_send_call(u32 nr)
{
	/* x86-64: write, writev, sendfile, sendto, sendmsg, splice, tee, sendmmsg, io_uring_enter */
	return nr == 1 || nr == 20 || nr == 40 || nr == 44 || nr == 46 || nr == 275 || nr == 276 || nr == 307 ||
	       nr == 426;
}

static __always_inline bool is_receive_call(u32 nr)
{
	/* read, readv, recvfrom, recvmsg, splice, recvmmsg, io_uring_enter */
	return nr == 0 || nr == 19 || nr == 45 || nr == 47 || nr == 275 || nr == 299 || nr == 426;
}

/* Only of a socket that is known to be a full TCP socket. */
static __always_inline const struct tcp_sock *as_tcp(const struct sock *sk)
{
	if (bpf_ksym_exists(bpf_rdonly_cast))
		return bpf_rdonly_cast(sk, bpf_core_type_id_kernel(struct tcp_sock));
	return bpf_skc_to_tcp_sock((void *)sk);
}

/* Every loop turn of one call is told: the bytes queued and those still to come are the same sum in
 * each, and a larger one in the next call. `taken`: bytes of the message's current part that were queued. */
static __always_inline void on_tcp_send(struct cpu_state *cpu, const struct sock *sk, u64 remaining, u64 taken)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const struct tcp_sock *tcp = as_tcp(sk);
	u32 seq = tcp ? tcp->write_seq : 0;
	u32 end_seq = seq + (u32)remaining;
	struct sender *sender = sender_of((u64)sk);
	struct send *send;
	struct call *call;
	u32 tid = task->pid;

	if (!sender)
		return;
	if (sender->sk != (u64)sk) {
		if (sender->sk)
			count(cpu, CALL_LOST);
		sender->sk = (u64)sk;
		sender->count = 0;
	}
	send = &sender->sends[sender->count & (SENDS - 1)];
	if (sender->count && send->end_seq == end_seq && send->tid == tid) {
		cost(cpu, TX_TRANSPORT, false);
		return;
	}
	/* A call that began before: where, another socket's call has overwritten. */
	if (taken) {
		cost(cpu, TX_TRANSPORT, false);
		return;
	}
	sender->count++;
	send = &sender->sends[sender->count & (SENDS - 1)];
	send->first_seq = seq;
	send->end_seq = end_seq;
	send->tid = tid;
	send->tgid = task->tgid;
	__builtin_memcpy(send->comm, task->comm, 16);
	send->enter.value = 0;
	if (has(TX_SYSCALL)) {
		call = call_of(tid);
		if (call && is_of(cpu, call, tid) && is_send_call(call->nr))
			send->enter = call->enter;
	}
	moment_now(cpu, &send->transport, TX_TRANSPORT);
}

/* Stamps that were taken before there was a packet. */
static __always_inline void stamp_moment(struct slot *slot, const struct moment *moment, enum point point)
{
	if (!slot->base) {
		slot->base = moment->value;
		slot->last_cost = moment->cost;
		slot->last_cpu = moment->cpu;
	}
	/* What the stamp's own hit cost is not part of what lies before it. */
	slot->record.stamps[point] =
		stamp_word(slot, moment->value, moment->cost - control.hit_ns[point], moment->cpu);
	slot->last_cost = moment->cost;
	slot->last_cpu = moment->cpu;
	slot->last_delta = (u32)slot->record.stamps[point];
	slot->last_point = point;
}

static __always_inline void set_caller(struct slice_record *record, u32 tgid, u32 tid, const u8 *comm)
{
	record->tx_tgid = tgid;
	record->tx_tid = tid;
	__builtin_memcpy(record->tx_comm, comm, 16);
}

static __always_inline void stamp_send(struct slot *slot, const struct send *send)
{
	struct slice_record *record = &slot->record;

	set_caller(record, send->tgid, send->tid, send->comm);
	record->tx_call_seq = send->first_seq;
	record->tx_call_len = send->end_seq - send->first_seq;
	if (has(TX_SYSCALL) && send->enter.value)
		stamp_moment(slot, &send->enter, TX_SYSCALL);
	stamp_moment(slot, &send->transport, TX_TRANSPORT);
}

/* The call that wrote these bytes, if it is one of the socket's last. */
static __always_inline bool find_send(struct slot *slot, u64 sk)
{
	struct slice_record *record = &slot->record;
	struct sender *sender = sender_of(sk);

	if (!sender || sender->sk != sk)
		return false;
	for (u32 back = 0; back < SENDS; back++) {
		struct send *send = &sender->sends[(sender->count - back) & (SENDS - 1)];

		if (back >= sender->count)
			return false;
		if ((s32)(record->tcp_seq - send->first_seq) >= 0 && (s32)(send->end_seq - record->tcp_seq) > 0) {
			stamp_send(slot, send);
			return true;
		}
	}
	return false;
}

/* The socket behind a descriptor of the running thread; 0: none. */
static __always_inline u64 socket_of(const struct task_struct *task, u32 fd)
{
	const struct fdtable *table;
	const void *file, *socket;

	table = (const void *)peek8(&((const struct files_struct *)peek8(&task->files))->fdt);
	if (!table)
		return 0;
	file = (const void *)peek8((const void *)(peek8(&table->fd) + fd * 8ULL));
	socket = file ? (const void *)peek8(&((const struct file *)file)->private_data) : NULL;
	return socket ? peek8(&((const struct socket *)socket)->sk) : 0;
}

/* Without a hook in UDP, the packet is of the call that the thread is in, if that is on its socket:
 * a softirq runs in any thread's call. */
static __always_inline void find_call(struct cpu_state *cpu, struct slot *slot, u64 sk)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 tid = task->pid;
	struct call *call = call_of(tid);

	if (!sk || !call || !is_of(cpu, call, tid))
		return;
	if (has(TX_TRANSPORT) && call->transport.value && call->udp_sk == sk) {
		set_caller(&slot->record, task->tgid, tid, (const u8 *)task->comm);
		if (has(TX_SYSCALL) && call->enter.value)
			stamp_moment(slot, &call->enter, TX_SYSCALL);
		stamp_moment(slot, &call->transport, TX_TRANSPORT);
		call->transport.value = 0;
		return;
	}
	if (!is_send_call(call->nr) || !call->enter.value || socket_of(task, call->fd) != sk)
		return;
	set_caller(&slot->record, task->tgid, tid, (const u8 *)task->comm);
	stamp_moment(slot, &call->enter, TX_SYSCALL);
}

static __always_inline void gso_register(struct slot *slot, struct ref ref, const struct sk_buff *skb, u64 head);

/* The first hook that sees a packet of this kernel's: whose it is, and what was stamped before there
 * was a packet. */
static __always_inline void begin_tx(struct cpu_state *cpu, const struct sk_buff *skb, u64 head, enum point point)
{
	const struct sock *sk = skb->sk;
	struct ref ref;
	struct slot *slot = find(head, &ref);

	slot = begin(cpu, skb, head, skb->network_header, slot, &ref);
	if (!slot) {
		cost(cpu, point, false);
		return;
	}
	set_tx_device(&slot->record, skb->dev);
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

static __always_inline void on_dev_queue(struct cpu_state *cpu, const struct sk_buff *skb)
{
	u64 head = head_of(skb);
	struct ref ref;
	struct slot *slot = find_sent(cpu, head, &ref);

	if (slot) {
		stamp_first(cpu, slot, (u64)skb, TX_DEV_QUEUE);
		return;
	}
	/* Packets of a socket have passed IP's output; what it did not choose stays not chosen. */
	if (has(TX_IP_OUT) && skb->sk) {
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
	ops = dev->rtnl_link_ops;
	if (!ops)
		return true;
	kind = peek8(ops->kind) & 0xffffffff;
	return kind == 0x006e7574 /* tun */ || kind == 0x6d6d7564 /* dumm */;
}

static __always_inline u64 flow_key(u64 ports, const u8 *addresses, bool is6)
{
	u64 key = ports & 0xffffffff;

	key = key << 32 ^ peek8(addresses);
	if (is6)
		key ^= peek8(addresses + 8) ^ peek8(addresses + 16) * 3 ^ peek8(addresses + 24) * 5;
	return key;
}

static __always_inline struct parent *parent_of(u64 key)
{
	u32 at = hash64(key) & (PARENTS - 1);

	return bpf_map_lookup_elem(&parents, &at);
}

/* A packet of several segments may be cut before the driver. */
static __always_inline void gso_register(struct slot *slot, struct ref ref, const struct sk_buff *skb, u64 head)
{
	const struct skb_shared_info *shared = (const void *)(head + skb->end);
	bool is6 = slot->record.family == 6;
	u16 segments = 0;
	struct parent *parent;
	u64 key;

	bpf_core_read(&segments, sizeof(segments), &shared->gso_segs);
	slot->record.segments = segments;
	if (segments < 2 || slot->record.protocol != PROTOCOL_TCP)
		return;
	key = flow_key(slot->id4, (const u8 *)(head + slot->off3 + (is6 ? 8 : 12)), is6);
	parent = parent_of(key);
	if (!parent)
		return;
	parent->key = key;
	parent->ref = ref;
	parent->sk = (u64)skb->sk;
	parent->seq = slot->record.tcp_seq;
	parent->end_seq = slot->end_seq;
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
	record->stamps[TX_SYSCALL] = 0;
	record->stamps[TX_TRANSPORT] = 0;
	record->tx_call_seq = 0;
	record->tx_call_len = 0;
	record->tx_tgid = 0;
	record->tx_tid = 0;
	__builtin_memset(record->tx_comm, 0, 16);
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

/* A packet at the driver that nobody has seen: a segment that was cut from one that somebody has. */
static __always_inline struct slot *split(struct cpu_state *cpu, const struct sk_buff *skb, u64 head, struct ref *ref)
{
	u16 off3 = skb->network_header;
	const u8 *l3 = (const u8 *)(head + off3);
	bool is6;
	u8 h[64];
	u32 seq, header, l4;
	u64 key;
	struct parent *parent;
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
	parent = parent_of(key);
	if (!parent || parent->key != key)
		return NULL;
	seq = be32(h + (is6 ? 44 : 24));
	from = follow(parent->ref);
	if (!from || (s32)(seq - parent->seq) < 0 || (s32)(parent->end_seq - seq) <= 0)
		return NULL;
	if (from->state & ENDED)
		return NULL;
	slot = find(head, ref);
	if (slot && slot->is_kept)
		orphan(head, ref->slot);
	else if (slot)
		give_up(cpu, slot, *ref, STALE_ENDED);
	slot = take(cpu, head, ref);
	if (!slot)
		return NULL;
	count(cpu, CREATED);
	count(cpu, SPLIT_COUNT);
	slot->is_kept = 0;
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
	slot->record.parent = from->record.id;
	slot->record.id = (u64)(bpf_get_smp_processor_id() + 1) << 40 | (__sync_fetch_and_add(&cpu->next_id, 1) + 1);
	slot->record.flags |= F_SPLIT;
	slot->record.segments = 1;
	slot->record.tcp_seq = seq;
	slot->record.ip_len = skb->len + (u32)(data_of(skb) - head) - off3;
	header = l4 + (h[(is6 ? 52 : 32)] >> 4) * 4;
	slot->record.payload = slot->record.ip_len > header ? slot->record.ip_len - header : 0;
	slot->record.ip_id = is6 ? 0 : be16(h + 4);
	slot->record.tcp_flags = h[is6 ? 53 : 33];
	slot->end_seq = seq + slot->record.payload;
	slot->cover_end = slot->end_seq;
	if (has(TX_TRANSPORT) && slot->record.tx_call_len)
		segment_call(slot, parent->sk);
	if (config.snap)
		keep_bytes(slot->record.id, ref->slot, l3, skb->len - skb->data_len, slot->record.ip_len);
	cpu->cost += control.begin_ns;
	/* The last segment ends the larger packet, whose record the segments have. */
	if (slot->end_seq == parent->end_seq)
		give_up(cpu, from, parent->ref, SPLIT_PARENTS);
	return slot;
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
