/* What the reader of a UDP socket took: by the number of datagrams that wait, where the kernel frees them elsewhere. */
#pragma once
#include "read.h"

/* How many packets wait in a UDP socket: its queue, and what its reader has taken from there at once. */
static __always_inline u32 udp_waiting(const struct sock *sk)
{
	const struct udp_sock *udp;

	if (!bpf_ksym_exists(bpf_rdonly_cast))
		return ~0u;
	udp = bpf_rdonly_cast(sk, bpf_core_type_id_kernel(struct udp_sock));
	return sk->sk_receive_queue.qlen + udp->reader_queue.qlen;
}

/* Whether no other thread is in a call on the socket: one that has taken a packet and has not come to its hook
 * yet would be told of another's. Threads that share their descriptors hold the file while they are in a call;
 * what else holds it (dup, fork) counts as a thread. */
static __always_inline bool is_only_caller(const struct sock *sk, const struct task_struct *task)
{
	const struct socket *socket = (const void *)peek8(&sk->sk_socket);
	const void *file = (const void *)peek8(&socket->file);
	const struct files_struct *files = (const void *)peek8(&task->files);
	u64 held, alone = (u32)peek8(&files->count) > 1 ? 2 : 1;

	if (!socket || !file)
		return false;
	/* Of file_ref_t, 0 is one reference (include/linux/file_ref.h). */
	if (bpf_core_field_exists(((struct file___referred *)0)->f_ref))
		held = peek8(&((const struct file___referred *)file)->f_ref) + 1;
	else
		held = peek8(&((const struct file___counted *)file)->f_count);
	return held == alone;
}

static __always_inline void end_ambiguous(struct cpu_state *cpu, struct ref ref)
{
	struct slot *slot = follow(ref);

	if (!slot || slot->record.stamps[RX_COPIED])
		return;
	slot->record.flags |= F_AMBIGUOUS;
	count(cpu, AMBIGUOUS);
	end(cpu, slot, ref);
}

struct forget_walk {
	u64 sk;
	u32 at;
};

static long forget_one(u32 i, struct forget_walk *walk)
{
	struct cpu_state *cpu = this_cpu();
	struct receiver *receiver = receiver_of(walk->sk);

	if (!cpu || !receiver)
		return 1;
	end_ambiguous(cpu, receiver->queue[(walk->at + i) & (QUEUE - 1)].ref);
	return 0;
}

/* Newer kernels free UDP's packets later and elsewhere; but each call takes one, in order. What was taken is
 * the first of ours only while as many wait in the socket as we know of: packets that came before the hooks,
 * and calls that were missed, are told by that; and only while nobody else reads. */
static __always_inline void on_udp_received(struct cpu_state *cpu, const struct sock *sk, int returned, int flags)
{
	struct receiver *receiver = receiver_of((u64)sk);
	struct task_struct *task = bpf_get_current_task_btf();
	struct slot *slot;
	struct ref ref;
	u32 at, head;

	if (flags & MSG_PEEK) {
		struct call *call = call_of(task->pid);

		cost(cpu, RX_COPIED, false);
		if (!has(RX_COPY) || !call || !is_of(cpu, call, task->pid))
			return;
		slot = follow(call->copying);
		if (slot && slot->record.protocol == PROTOCOL_UDP && !slot->record.stamps[RX_COPIED])
			forget_copy(cpu, slot);
		return;
	}
	if (!receiver || !is_its(cpu, receiver, sk) || receiver->head == receiver->tail || returned < 0) {
		cost(cpu, RX_COPIED, false);
		return;
	}
	head = *(volatile u32 *)&receiver->head;
	at = __sync_fetch_and_add(&receiver->tail, 1);
	if (udp_waiting(sk) != head - at - 1 || !is_only_caller(sk, task)) {
		struct forget_walk walk = { .sk = (u64)sk, .at = at };
		u32 known = head - at;

		receiver->tail = head;
		cost(cpu, RX_COPIED, false);
		bpf_loop(known < QUEUE ? known : QUEUE, forget_one, &walk, 0);
		return;
	}
	if (receiver->queue[at & (QUEUE - 1)].seq != at) {
		/* One that was not remembered. */
		cost(cpu, RX_COPIED, false);
		return;
	}
	ref = receiver->queue[at & (QUEUE - 1)].ref;
	slot = follow(ref);
	/* A longer packet may be cut to the reader's room, never a shorter one made longer. */
	if (!slot || receiver->is_ambiguous || (u32)returned > slot->record.payload ||
	    slot->record.rx_cookie != receiver->cookie) {
		cost(cpu, RX_COPIED, false);
		end_ambiguous(cpu, ref);
		return;
	}
	copied(cpu, slot, ref, ends_in_call() ? reader(cpu, task->pid) : NULL, task);
}
