/* Redirected bytes that wait to be read. */
#pragma once
#include <kernel.h>
#include <bpf/bpf_core_read.h>

static __always_inline bool has_queued(struct sock *sk)
{
	struct sk_psock *psock = (void *)SOCK_DATA_POINTER((u64)BPF_CORE_READ(sk, sk_user_data));

	return psock && (u64)BPF_CORE_READ(psock, ingress_msg.next) !=
				(u64)psock + bpf_core_field_offset(struct sk_psock, ingress_msg);
}
