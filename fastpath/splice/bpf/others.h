/* One send may become several messages, between which the kernel releases the socket where it redirects
 * (tcp_bpf_send_verdict, net/ipv4/tcp_bpf.c): bytes of another thread may come in between. By TCP it holds it. */
#pragma once
#include "state.h"
#include "waiters.h"
#include <bpf/bpf_core_read.h>

/* A message has 17 pieces (MAX_MSG_FRAGS, include/linux/skmsg.h), all but the first of a page at least: what is shorter
 * than this is a send's only message, or its last one. */
#define WHOLE_SEND 65536

/* Another thread, or another process, may send on this socket, too. */
static __noinline bool has_others(struct sock *sk)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct file *file = BPF_CORE_READ(sk, sk_socket, file);

	if (BPF_CORE_READ(task, signal, nr_threads) != 1 || !file)
		return true;
	/* Since 6.13, where 0 is one. */
	if (bpf_core_field_exists(file->f_ref))
		return BPF_CORE_READ(file, f_ref.refcnt.counter) != 0;
	return BPF_CORE_READ(file, f_count.counter) != 1;
}

/* So often is it looked whether other calls are over: some 100 us, once. */
#define LOOKS_MAX 1024

/* Stops when no other call on this socket is under way: each holds its psock (tcp_bpf_sendmsg), as this one does, and the
 * map. Those that sleep wait for bytes. */
static long look_for_calls(u32 n, struct sock **sk)
{
	struct sk_psock *psock = (void *)SOCK_DATA_POINTER((u64)BPF_CORE_READ(*sk, sk_user_data));

	return BPF_CORE_READ(psock, refcnt.refs.counter) <= 2 + (s32)tasks_asleep(*sk);
}

/* A message that was to be redirected when this send began would be read between its bytes. */
static __noinline void wait_for_redirected(const struct end *own)
{
	struct sock *sk = (struct sock *)own->sock;

	bpf_loop(LOOKS_MAX, look_for_calls, &sk, 0);
}

/* From the first message of such a send until it is over (splice_on_sent), and for good where two threads were seen to
 * send: a message of another one may be between its redirection and the queue whenever such a send begins. */
static __always_inline void look_for_long_send(struct end *own, u64 size)
{
	u64 thread = bpf_get_current_pid_tgid();

	if (!own->first_sender)
		own->first_sender = thread;
	else if (own->first_sender != thread)
		own->has_senders = 1;
	if (own->long_send || own->takes_tcp || size < WHOLE_SEND || !has_others((struct sock *)own->sock))
		return;
	own->long_send = thread;
	if (!own->has_senders)
		return;
	own->takes_tcp = 1;
	wait_for_redirected(own);
}
