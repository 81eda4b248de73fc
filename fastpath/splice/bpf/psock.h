/* What the kernel keeps of a socket that is in a map of sockets. */
#pragma once

/* include/linux/skmsg.h: the low bits of sk_user_data say what it is. */
static __always_inline struct sk_psock *psock_of(struct tcp_sock *tcp)
{
	struct sock *sk = (void *)tcp;
	return (void *)((unsigned long)BPF_CORE_READ(sk, sk_user_data) & ~7UL);
}
