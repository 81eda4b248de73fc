/* The reader: its system calls, the copies, and the ends of the packets that it read. */
#pragma once
#include "wake.h"

static __always_inline void on_sys_enter(struct cpu_state *cpu, u32 nr, u32 fd)
{
	struct task_struct *task;
	struct call *call;

	nobody_woken(cpu);
	if (!is_send_call(nr) && !is_receive_call(nr)) {
		cost(cpu, TX_SYSCALL, false);
		return;
	}
	task = bpf_get_current_task_btf();
	call = call_of(task->pid);
	if (!call)
		return;
	if (call->tid && call->tid != (u32)task->pid && call->enter.value)
		count(cpu, CALL_LOST);
	call->tid = task->pid;
	call->epoch = cpu->epoch;
	/* What an earlier call read, its return was not seen. */
	call->done_count = 0;
	call->nr = nr;
	call->fd = fd;
	call->copy.value = 0;
	moment_now(cpu, &call->enter, TX_SYSCALL);
}

static __always_inline struct call *reader(struct cpu_state *cpu, u32 tid)
{
	struct call *call = call_of(tid);

	if (!call)
		return NULL;
	if (!is_of(cpu, call, tid)) {
		if (call->tid && call->tid != tid && (call->enter.value || call->done_count))
			count(cpu, CALL_LOST);
		call->tid = tid;
		call->epoch = cpu->epoch;
		call->nr = 0;
		call->enter.value = 0;
		call->transport.value = 0;
		call->copy.value = 0;
		call->copying.gen = ENDING;
		call->done_count = 0;
	}
	return call;
}

static __always_inline void on_udp_send(struct cpu_state *cpu, const struct sock *sk)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct call *call = reader(cpu, task->pid);

	if (!call)
		return;
	call->udp_sk = (u64)sk;
	moment_now(cpu, &call->transport, TX_TRANSPORT);
}

static __always_inline bool ends_in_call(void)
{
	return config.last_point == RX_RECEIVED || config.last_point == RX_RETURN;
}

/* MSG_PEEK copies as reading does, and nothing is read: the packet goes on waiting. What probes cost up to here
 * belongs to the next stamp. */
static __always_inline void forget_copy(struct cpu_state *cpu, struct slot *slot)
{
	if (slot->precopy_point == NO_POINT)
		return;
	slot->record.stamps[RX_COPY] = 0;
	slot->last_cost = slot->precopy_cost;
	slot->last_cpu = slot->precopy_cpu;
	slot->last_point = slot->precopy_point;
	slot->precopy_point = NO_POINT;
	if (!(slot->record.flags & F_PEEKED))
		count(cpu, PEEKED);
	slot->record.flags |= F_PEEKED;
}

static __always_inline void on_copy(struct cpu_state *cpu, const struct sk_buff *skb)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct call *call = reader(cpu, task->pid);
	u64 head = head_of(skb);
	struct ref ref;
	struct slot *slot = find_same(cpu, head, &ref);

	if (!call)
		return;
	call->copying.gen = ENDING;
	/* A packet socket has a packet of its own in the same buffer, and its reader is not this one's. */
	if (slot && slot->skb != (u64)skb) {
		count(cpu, STALE_REFUSED);
		slot = NULL;
	}
	if (slot) {
		call->copying = ref;
		/* UDP's packets are read at once: the copy before was none of a reader's. */
		if (slot->record.stamps[RX_COPY] && slot->record.protocol == PROTOCOL_UDP)
			forget_copy(cpu, slot);
		/* TCP's may be read in parts: the first copy counts. */
		if (!slot->record.stamps[RX_COPY]) {
			slot->precopy_cost = slot->last_cost;
			slot->precopy_cpu = slot->last_cpu;
			slot->precopy_point = slot->last_point;
			stamp(cpu, slot, (u64)skb, RX_COPY);
			call->copy.value = slot->base + (u32)slot->record.stamps[RX_COPY];
			call->copy.cpu = slot->last_cpu;
			call->copy.cost = slot->last_cost;
			return;
		}
		call->copy.value = 0;
	}
	moment_now(cpu, &call->copy, RX_COPY);
}

static __always_inline void set_reader(struct slice_record *record, const struct task_struct *task)
{
	record->rx_tid = task->pid;
	record->rx_tgid = task->tgid;
	__builtin_memcpy(record->rx_comm, task->comm, 16);
}

/* All of the packet is with the reader. */
static __always_inline void copied(struct cpu_state *cpu, struct slot *slot, struct ref ref, struct call *call,
				   const struct task_struct *task)
{
	set_reader(&slot->record, task);
	if (has(RX_COPY) && !slot->record.stamps[RX_COPY] && slot->record.protocol == PROTOCOL_TCP) {
		slot->record.flags |= F_COALESCED;
		count(cpu, COALESCED_COUNT);
		if (call && call->copy.value)
			stamp_moment(slot, &call->copy, RX_COPY);
	}
	if (!slot->record.stamps[RX_WAKING])
		slot->record.flags |= F_READER_AWAKE;
	stamp(cpu, slot, slot->skb, RX_COPIED);
	if (!ends_in_call() || !call) {
		end(cpu, slot, ref);
		return;
	}
	if (call->done_count >= DONE_KEPT) {
		slot->record.flags |= F_CALL_FULL;
		end(cpu, slot, ref);
		return;
	}
	/* The reader frees the buffer, and the next packet, an acknowledgement of this one say, may be in it. */
	slot->is_kept = 1;
	call->done[call->done_count & (DONE_KEPT - 1)] = ref;
	call->done_count++;
}

struct queue_walk {
	u64 sk;
	u32 copied_seq;
	u32 at;            /* next in the queue */
	struct ref merging; /* a packet that holds others, and the end of what it holds */
	u64 merging_id;
	u32 cover_end;
	u32 stop;
};

/* Stamps between driver and reader of a packet that GRO merged into another are the other's. */
static __always_inline void stamp_as_merged(struct slot *slot, struct queue_walk *walk)
{
	struct slot *other = slot_at(walk->merging.slot);
	u64 shift;

	if (!other || slot->record.stamps[RX_TRANSPORT])
		return;
	/* The other's record may have been handed over already; what lies in its slot still stands until
	 * another packet begins there. */
	if (other->record.id != walk->merging_id)
		return;
	shift = other->base - slot->base;
	for (u32 point = RX_CORE; point <= RX_SCHED_IN; point++) {
		u64 word = other->record.stamps[point];

		if (word && !slot->record.stamps[point])
			slot->record.stamps[point] = (word & ~0xffffffffULL) | ((u32)word + (u32)shift);
	}
	slot->last_cost = other->last_cost;
	slot->last_cpu = other->last_cpu;
}

static long copied_one(u32 i, struct queue_walk *walk)
{
	struct cpu_state *cpu = this_cpu();
	struct receiver *receiver = receiver_of(walk->sk);
	struct task_struct *task = bpf_get_current_task_btf();
	struct call *call;
	struct slot *slot;
	struct ref ref;
	u32 at;

	if (!cpu || !receiver)
		return 1;
	at = walk->at & (QUEUE - 1);
	ref = receiver->queue[at].ref;
	slot = follow(ref);
	if (slot && (s32)(walk->copied_seq - receiver->queue[at].end_seq) < 0) {
		/* Not yet read: in a sorted queue neither is what follows. */
		if (!receiver->is_unsorted)
			return 1;
		walk->stop = 1;
		walk->at++;
		return 0;
	}
	walk->at++;
	/* What precedes the first unread packet leaves the queue. */
	if (!walk->stop)
		receiver->tail = walk->at;
	receiver->queue[at].ref.gen = ~0;
	if (!slot || slot->record.rx_cookie != receiver->cookie) {
		if (!slot || slot->record.rx_cookie)
			return 0;
		slot->record.rx_cookie = receiver->cookie;
	}
	if ((s32)(walk->cover_end - slot->record.tcp_seq) > 0)
		stamp_as_merged(slot, walk);
	if (slot->cover_end != slot->end_seq) {
		walk->merging = ref;
		walk->merging_id = slot->record.id;
		walk->cover_end = slot->cover_end;
	}
	call = ends_in_call() || has(RX_COPY) ? reader(cpu, task->pid) : NULL;
	copied(cpu, slot, ref, call, task);
	return 0;
}

/* TCP has copied up to here. */
static __always_inline void on_tcp_copied(struct cpu_state *cpu, const struct sock *sk)
{
	const struct tcp_sock *tcp = as_tcp(sk);
	struct receiver *receiver = receiver_of((u64)sk);
	struct task_struct *task = bpf_get_current_task_btf();
	struct call *call;
	struct slot *slot;
	u32 pending;

	if (!tcp || !receiver) {
		cost(cpu, RX_COPIED, false);
		return;
	}
	if (is_its(cpu, receiver, sk) && receiver->head != receiver->tail) {
		struct queue_walk walk = {
			.sk = (u64)sk,
			.copied_seq = tcp->copied_seq,
			.at = receiver->tail,
		};

		walk.cover_end = walk.copied_seq - (1u << 31);
		pending = receiver->head - receiver->tail;
		if (pending > QUEUE)
			pending = QUEUE;
		bpf_loop(pending, copied_one, &walk, 0);
		if (receiver->head == receiver->tail)
			receiver->is_unsorted = 0;
	} else {
		cost(cpu, RX_COPIED, false);
	}
	if (!has(RX_COPY) && !ends_in_call())
		return;
	call = call_of(task->pid);
	if (!call || !is_of(cpu, call, task->pid))
		return;
	if (ends_in_call())
		call->copied_seq = tcp->copied_seq;
	if (!has(RX_COPY) || call->copying.gen & ENDING)
		return;
	slot = follow(call->copying);
	if (slot && slot->record.protocol == PROTOCOL_TCP && !slot->record.stamps[RX_COPIED] &&
	    (s32)(tcp->copied_seq - slot->record.tcp_seq) <= 0) {
		forget_copy(cpu, slot);
		return;
	}
	/* A packet that was not in the queue, since no hook saw its socket. */
	if (slot && !slot->record.stamps[RX_COPIED] && slot->record.protocol == PROTOCOL_TCP &&
	    slot->record.stamps[RX_COPY] && (s32)(tcp->copied_seq - slot->end_seq) >= 0)
		copied(cpu, slot, call->copying, call, task);
}

/* A packet is freed in the ordinary way: after UDP's copy, or at its end in the kernel. */
static __always_inline void on_consumed(struct cpu_state *cpu, const struct sk_buff *skb)
{
	u64 head = head_of(skb);
	struct ref ref;
	struct slot *slot = find(head, &ref);
	struct task_struct *task;

	/* A copy of the packet's head, for a packet socket say, is not the packet. */
	if (!slot || slot->skb != (u64)skb || slot->record.protocol == PROTOCOL_TCP ||
	    slot->last_point < RX_CORE || slot->record.stamps[RX_COPIED] || !is_same(slot, head)) {
		cost(cpu, RX_COPIED, false);
		return;
	}
	if (slot->record.protocol != PROTOCOL_UDP || slot->last_point < RX_IP) {
		/* The kernel itself was the receiver. */
		end(cpu, slot, ref);
		return;
	}
	if (config.udp_in_order) {
		/* Read, and it was not clear by which call. */
		slot->record.flags |= F_AMBIGUOUS;
		count(cpu, AMBIGUOUS);
		end(cpu, slot, ref);
		return;
	}
	/* From a UDP socket's queue only a reader takes in this way: UDP copies short packets where no
	 * hook is, so that there may be no stamp of the copy's beginning. */
	task = bpf_get_current_task_btf();
	copied(cpu, slot, ref, ends_in_call() ? reader(cpu, task->pid) : NULL, task);
}

#define MSG_PEEK 2

struct call_walk {
	u32 tid;
	s32 returned;
	enum point point;
	bool is_end;
};

static long call_one(u32 i, struct call_walk *walk)
{
	struct cpu_state *cpu = this_cpu();
	struct call *call = call_of(walk->tid);
	struct slot *slot;
	struct ref ref;

	if (!cpu || !call)
		return 1;
	ref = call->done[i & (DONE_KEPT - 1)];
	slot = follow(ref);
	if (!slot)
		return 0;
	if (walk->point == RX_RETURN) {
		if (!slot->record.stamps[RX_RETURN])
			stamp(cpu, slot, slot->skb, RX_RETURN);
		slot->record.rx_returned = walk->returned;
		slot->record.rx_call_seq = call->copied_seq - walk->returned;
	} else if (!slot->record.stamps[RX_RECEIVED]) {
		stamp(cpu, slot, slot->skb, RX_RECEIVED);
	}
	if (walk->is_end)
		end(cpu, slot, ref);
	return 0;
}

static __always_inline void call_point(struct cpu_state *cpu, enum point point, long returned)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct call *call = call_of(task->pid);
	struct call_walk walk = {
		.tid = task->pid,
		.returned = returned,
		.point = point,
		.is_end = config.last_point == point,
	};
	u32 pending;

	nobody_woken(cpu);
	if (!call || !is_of(cpu, call, walk.tid)) {
		cost(cpu, point, false);
		return;
	}
	pending = call->done_count;
	if (!pending) {
		cost(cpu, point, false);
	} else {
		if (pending > DONE_KEPT)
			pending = DONE_KEPT;
		bpf_loop(pending, call_one, &walk, 0);
		if (walk.is_end)
			call->done_count = 0;
	}
	if (point == RX_RETURN) {
		call->enter.value = 0;
		call->copy.value = 0;
	}
}
