/* Redirected bytes that wait to be read. */
#pragma once
#include <kernel.h>
#include <bpf/bpf_core_read.h>

/* Those of TCP come into the same queue (gather.h), or are on their way there while the reader has no room. */
static __always_inline bool is_gathered(struct sock *sk)
{
	struct sk_psock *psock = (void *)SOCK_DATA_POINTER((u64)BPF_CORE_READ(sk, sk_user_data));

	return psock && BPF_CORE_READ(psock, saved_data_ready);
}

static __always_inline bool has_queued(struct sock *sk)
{
	struct sk_psock *psock = (void *)SOCK_DATA_POINTER((u64)BPF_CORE_READ(sk, sk_user_data));

	return psock && ((u64)BPF_CORE_READ(psock, ingress_msg.next) !=
				 (u64)psock + bpf_core_field_offset(struct sk_psock, ingress_msg) ||
			 BPF_CORE_READ(psock, ingress_skb.qlen));
}

/* In TCP's own queue. */
static __always_inline bool has_tcps(struct sock *sk)
{
	return BPF_CORE_READ(sk, sk_receive_queue.qlen) != 0;
}
