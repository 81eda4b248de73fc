/* Which system call sent what: by thread, and of TCP by socket and range of sequence numbers. */
#pragma once
#include "begin.h"

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
	/* Before what it overwrites: find_send() looks. */
	asm volatile("" ::: "memory");
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

static __always_inline void forget_send(struct slice_record *record)
{
	record->stamps[TX_SYSCALL] = 0;
	record->stamps[TX_TRANSPORT] = 0;
	record->tx_call_seq = 0;
	record->tx_call_len = 0;
	record->tx_tgid = 0;
	record->tx_tid = 0;
	__builtin_memset(record->tx_comm, 0, 16);
}

/* The call that wrote these bytes, if it is one of the socket's last. A segment is looked up without the socket's lock:
 * what the next calls overwrote meanwhile is not known. */
static __always_inline bool find_send(struct slot *slot, u64 sk)
{
	struct slice_record *record = &slot->record;
	struct sender *sender = sender_of(sk);
	u64 base = slot->base;
	u32 count;

	if (!sender || sender->sk != sk)
		return false;
	count = *(volatile u32 *)&sender->count;
	for (u32 back = 0; back < SENDS; back++) {
		struct send *send = &sender->sends[(count - back) & (SENDS - 1)];

		if (back >= count)
			return false;
		if ((s32)(record->tcp_seq - send->first_seq) >= 0 && (s32)(send->end_seq - record->tcp_seq) > 0) {
			stamp_send(slot, send);
			if (*(volatile u64 *)&sender->sk == sk && *(volatile u32 *)&sender->count - count < SENDS - back)
				return true;
			forget_send(record);
			slot->base = base;
			return false;
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
