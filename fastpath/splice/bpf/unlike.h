/* Options of a socket that redirected bytes do not keep to: the kernel looks at them only where it reads what came
 * by TCP (tcp_recvmsg, net/ipv4/tcp.c). */
#pragma once
#include "kernel.h"
#include <bpf/bpf_core_read.h>

static __always_inline bool is_unlike(struct sock *sk)
{
	struct tcp_sock *tcp = (void *)sk;

	return BPF_CORE_READ(sk, sk_rcvlowat) > 1 || BPF_CORE_READ_BITFIELD_PROBED(tcp, recvmsg_inq);
}
