/* Which sockets of a map have bytes that were handed over and not read. */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

char terms[] SEC("license") = "GPL";

struct queued {
	u64 cookie;
	/* 0 where the kernel keeps no sum. */
	u64 bytes;
};

SEC("iter/sockmap")
int queued(struct bpf_iter__sockmap *ctx)
{
	struct sock *sk = ctx->sk;
	struct queued line = {};
	struct sk_psock *psock;
	u64 first;

	if (!sk)
		return 0;
	psock = (void *)SOCK_DATA_POINTER((u64)BPF_CORE_READ(sk, sk_user_data));
	if (!psock)
		return 0;
	first = (u64)BPF_CORE_READ(psock, ingress_msg.next);
	if (first == (u64)psock + bpf_core_field_offset(struct sk_psock, ingress_msg))
		return 0;
	line.cookie = BPF_CORE_READ(sk, __sk_common.skc_cookie.counter);
	if (bpf_core_field_exists(psock->msg_tot_len))
		line.bytes = BPF_CORE_READ(psock, msg_tot_len);
	bpf_seq_write(ctx->meta->seq, &line, sizeof(line));
	return 0;
}
