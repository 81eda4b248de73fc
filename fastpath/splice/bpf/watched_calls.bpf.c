/* Calls that redirected bytes do not keep to, at tracepoints that TCP passes in any case. */
#pragma once
#include "calls.bpf.c"
#include "in_flight.h"
#include "incompatible.h"
#include "rings.h"
#include <bpf/bpf_tracing.h>

/* splice(2) and sendfile(2) read a socket by tcp_read_sock, which knows nothing of redirected bytes: whoever reads so
 * before it is joined never is. */
SEC("tp_btf/tcp_rcv_space_adjust")
int BPF_PROG(splice_on_read, struct sock *sk)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(bpf_get_current_task_btf());
	u64 nr = BPF_CORE_READ(regs, orig_ax);

	if ((nr == NR_SPLICE || nr == NR_SENDFILE) && !is_other_table())
		on_incompatible_call(sk, CALL_SPLICE);
	return 0;
}

/* It does not see TCP's bytes behind redirected ones. A connection that is joined stays so, since the rest of a message would
 * take TCP, unless it waits for what it does not see (gather.h). A single byte only tells whether the connection is open. */
static __always_inline void on_peek(struct sock *sk, int bytes)
{
	struct end *own = bpf_sk_storage_get(&splice_ends, sk, NULL, 0);

	if (!own)
		return;
	if (own->stage != STAGE_JOINED) {
		if (bytes > 1)
			on_incompatible_call(sk, CALL_PEEK);
		return;
	}
	own->has_peeked = 1;
	if (own->has_told || bytes <= 1)
		return;
	own->has_told = 1;
	tell(LEVEL_CALL, CALL_PEEK);
	mark_program(sk, own);
}

/* include/net/tcp.h */
#define TCP_URG_READ 0x0200

/* tcp_bpf_recvmsg (net/ipv4/tcp_bpf.c) does not look at MSG_OOB while redirected bytes are unread. TCP notes an urgent byte
 * that it has given (tcp_recv_urg, net/ipv4/tcp.c). */
static __always_inline void on_urgent(struct sock *sk, int bytes)
{
	struct end *own = bpf_sk_storage_get(&splice_ends, sk, NULL, 0);

	if (own && own->stage == STAGE_JOINED && BPF_CORE_READ((struct tcp_sock *)sk, urg_data) != TCP_URG_READ)
		count_more(COUNT_URGENT_MISREAD, bytes);
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(splice_on_receive, struct sock *sk, int result, int flags)
{
	if (flags & MSG_OOB && !(flags & MSG_PEEK) && result > 0)
		on_urgent(sk, result);
	if (flags & (MSG_OOB | MSG_TRUNC))
		on_incompatible_call(sk, CALL_RECEIVE_FLAGS);
	else if (flags & MSG_PEEK && result > 0)
		on_peek(sk, result);
	return 0;
}

/* Every send of a joined socket comes by here: by a system call, io_uring, or, since 6.5, sendfile. */
SEC("tp_btf/sock_send_length")
int BPF_PROG(splice_on_sent, struct sock *sk)
{
	struct end *own = bpf_sk_storage_get(&splice_ends, sk, NULL, 0);

	if (!own)
		return 0;
	look_for_ring(sk, own);
	/* One of which several messages might come (look_for_long_send). */
	if (own->long_send == bpf_get_current_pid_tgid())
		own->long_send = 0;
	end_flight(own);
	return 0;
}

SEC("tp_btf/sk_data_ready")
int BPF_PROG(splice_on_queued, struct sock *sk)
{
	struct end *own = bpf_sk_storage_get(&splice_ends, sk, NULL, 0);

	if (own && own->is_joined && sk->sk_lock.owned)
		note_arrival(own);
	return 0;
}
