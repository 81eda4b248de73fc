/* How much of what was turned round has not arrived yet. */
#pragma once
#include "psock.h"

/* Packets before the client's socket: what its own receive buffer does not take waits there. */
static __always_inline __u32 waiting_packets(__u64 *client)
{
	struct bpf_sock *sk = bpf_map_lookup_elem(&clients, client);
	struct tcp_sock *tcp;
	struct sk_psock *psock;
	__u32 packets = 0;
	if (!sk)
		return 0;
	tcp = bpf_skc_to_tcp_sock(sk);
	psock = tcp ? psock_of(tcp) : NULL;
	if (psock)
		packets = BPF_CORE_READ(psock, ingress_skb.qlen);
	bpf_sk_release(sk);
	return packets;
}

/* The worker of net/core/skmsg.c holds the mutex from before it takes a packet from the queue until the
 * packet is where the client reads it: first the queue is looked at, then the mutex. */
static __always_inline bool is_idle(struct sk_psock *psock)
{
	if (BPF_CORE_READ(psock, ingress_skb.qlen))
		return 0;
	if (bpf_core_field_exists(struct mutex, owner) && BPF_CORE_READ(psock, work_mutex.owner.counter))
		return 0;
	if (bpf_core_field_exists(struct sk_psock_work_state, skb) && BPF_CORE_READ(psock, work_state.skb))
		return 0;
	return 1;
}

static __always_inline bool is_delivered(__u64 *client)
{
	struct bpf_sock *sk = bpf_map_lookup_elem(&clients, client);
	struct tcp_sock *tcp;
	struct sk_psock *psock;
	bool idle = 1;
	/* It is closed: there is nobody to deliver to. */
	if (!sk)
		return 1;
	tcp = bpf_skc_to_tcp_sock(sk);
	psock = tcp ? psock_of(tcp) : NULL;
	if (psock)
		idle = is_idle(psock);
	bpf_sk_release(sk);
	return idle;
}

/* TCP has every byte up to `sequence`: what is sent now, or a FIN, comes behind them. */
static __always_inline bool is_appended(__u64 *server, __u32 sequence)
{
	struct bpf_sock *sk = bpf_map_lookup_elem(&servers, server);
	struct tcp_sock *tcp;
	bool appended = 1;
	if (!sk)
		return 1;
	tcp = bpf_skc_to_tcp_sock(sk);
	if (tcp)
		appended = tcp->write_seq == sequence;
	bpf_sk_release(sk);
	return appended;
}
