/* A reader that peeks until a whole message is there is shown redirected bytes alone until it has read them, so it may wait for
 * ever for those that came by TCP behind them. What comes by TCP to an end in this map goes into the queue of redirected bytes,
 * in its order; what is there already, once `sk_data_ready` is called. It leaves this map when all is read (both: edges.bpf.c),
 * and its connection is released after that: in between a receive finds nothing (tcp_bpf_recvmsg_parser, net/ipv4/tcp_bpf.c). */
#pragma once
#include "gathered.h"
#include "incompatible.h"
#include "queue.h"
#include "state.h"

/* A FIN without bytes would stay in the queue. */
SEC("sk_skb/stream_verdict")
int splice_gather(struct __sk_buff *skb)
{
	return skb->len ? SK_PASS : SK_DROP;
}

/* Kernels that keep no sum of what is unread take redirected bytes for TCP's here, too, when these are read. */
static __always_inline void on_order_gather(struct sock *sk, struct end *own)
{
	u64 cookie = own->cookie;
	struct sk_psock *psock = NULL;

	if (!own->is_joined || !bpf_core_field_exists(psock->msg_tot_len))
		return;
	make_incompatible(own, INCOMPATIBLE_CALL);
	if (bpf_map_update_elem(&splice_gathered, &cookie, sk, BPF_NOEXIST))
		count(COUNT_MAP_ERROR);
	else
		count(COUNT_GATHERED);
}
