/* Functions of the kernel, where it has no tracepoint: before 6.16 (sending) and 6.3 (receiving). They
 * need the kernel's text to be rewritten, which not every kernel can do. */
#pragma once
#include "drop.h"

SEC("fentry/tcp_sendmsg_locked")
int BPF_PROG(fn_tcp_sendmsg_locked, const struct sock *sk, const struct msghdr *msg, unsigned long size)
{
	ENTER
	on_tcp_send(cpu, sk, size, 0);
	return 0;
}

SEC("fentry/udp_sendmsg")
int BPF_PROG(fn_udp_sendmsg, const struct sock *sk)
{
	ENTER
	on_udp_send(cpu, sk);
	return 0;
}

SEC("fentry/udpv6_sendmsg")
int BPF_PROG(fn_udpv6_sendmsg, const struct sock *sk)
{
	ENTER
	on_udp_send(cpu, sk);
	return 0;
}

/* Where the filters of control groups run, which see the packets of sockets only. */
SEC("fentry/ip_finish_output")
int BPF_PROG(fn_ip_finish_output, const struct net *net, const struct sock *sk, struct sk_buff *skb)
{
	ENTER
	if (sock_of(skb))
		on_ip_out(cpu, skb);
	return 0;
}

SEC("fentry/ip6_finish_output")
int BPF_PROG(fn_ip6_finish_output, const struct net *net, const struct sock *sk, struct sk_buff *skb)
{
	ENTER
	if (sock_of(skb))
		on_ip_out(cpu, skb);
	return 0;
}

SEC("fentry/sk_filter_trim_cap")
int BPF_PROG(fn_sk_filter_trim_cap, const struct sock *sk, struct sk_buff *skb)
{
	ENTER
	on_rx_ip(cpu, skb, sk);
	return 0;
}

SEC("fentry/sock_def_readable")
int BPF_PROG(fn_sock_def_readable, const struct sock *sk)
{
	ENTER
	on_socket(cpu, sk);
	return 0;
}

SEC("fexit/inet_recvmsg")
int BPF_PROG(fn_inet_recvmsg, const void *socket, const struct msghdr *msg, unsigned long size, int flags,
	     int returned)
{
	ENTER
	call_point(cpu, RX_RECEIVED, returned);
	return 0;
}

SEC("fexit/inet6_recvmsg")
int BPF_PROG(fn_inet6_recvmsg, const void *socket, const struct msghdr *msg, unsigned long size, int flags,
	     int returned)
{
	ENTER
	call_point(cpu, RX_RECEIVED, returned);
	return 0;
}
