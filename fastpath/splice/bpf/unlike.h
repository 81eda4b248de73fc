/* Options of a socket that redirected bytes do not keep to: the kernel looks at them only where it reads what came
 * by TCP (tcp_recvmsg, net/ipv4/tcp.c). */
#pragma once
#include <kernel.h>
#include <bpf/bpf_core_read.h>

/* Those that change what a reader is told when. */
static __always_inline bool is_unlike(struct sock *sk)
{
	struct tcp_sock *tcp = (void *)sk;

	return BPF_CORE_READ(sk, sk_rcvlowat) > 1 || BPF_CORE_READ_BITFIELD_PROBED(tcp, recvmsg_inq);
}

/* Whoever is told of its events by signals may read urgent bytes at SIGURG (fcntl(2), F_SETOWN). */
static __always_inline bool has_owner(struct sock *sk)
{
	struct file *file = BPF_CORE_READ(sk, sk_socket, file);
	struct file___owner_within *older = (void *)file;

	if (!file)
		return false;
	if (bpf_core_field_exists(file->f_owner))
		return BPF_CORE_READ(file, f_owner, pid);
	return BPF_CORE_READ(older, f_owner.pid);
}

/* Also those that its listener had. Setting one of them is seen by itself (options.h). */
static __always_inline bool has_incompatible_options(struct sock *sk)
{
	struct tcp_sock *tcp = (void *)sk;
	unsigned long stamps = 1UL << bpf_core_enum_value(enum sock_flags, SOCK_RCVTSTAMP);

	return is_unlike(sk) || has_owner(sk) || BPF_CORE_READ(sk, sk_peek_off) >= 0 || BPF_CORE_READ(sk, sk_filter) ||
	       BPF_CORE_READ(sk, sk_tsflags) || BPF_CORE_READ(sk, __sk_common.skc_flags) & stamps ||
	       BPF_CORE_READ_BITFIELD_PROBED(tcp, nonagle) & TCP_NAGLE_CORK;
}
