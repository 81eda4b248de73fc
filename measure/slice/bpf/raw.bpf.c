/* The same tracepoints with bare words for arguments: for kernels that refuse those with types. What a
 * word points to is read through a cast of the kernel's (Linux 6.2). */
#pragma once
#include "drop.h"

#define ENTER_RAW                                 \
	if (!bpf_ksym_exists(bpf_rdonly_cast))    \
		return 0;                         \
	ENTER

SEC("raw_tp/sys_enter")
int BPF_PROG(raw_sys_enter, const struct pt_regs *regs, long nr)
{
	ENTER_RAW
	on_sys_enter(cpu, nr, CAST(pt_regs, regs)->di);
	return 0;
}

SEC("raw_tp/sys_exit")
int BPF_PROG(raw_sys_exit, const struct pt_regs *regs, long returned)
{
	ENTER_RAW
	call_point(cpu, RX_RETURN, returned);
	return 0;
}

SEC("raw_tp/tcp_sendmsg_locked")
int BPF_PROG(raw_tcp_sendmsg_locked, const struct sock *sk, const struct msghdr *msg)
{
	ENTER_RAW
	on_tcp_send(cpu, CAST(sock, sk), CAST(msghdr, msg)->msg_iter.count, CAST(msghdr, msg)->msg_iter.iov_offset);
	return 0;
}

SEC("raw_tp/net_dev_queue")
int BPF_PROG(raw_net_dev_queue, const struct sk_buff *skb)
{
	ENTER_RAW
	on_dev_queue(cpu, CAST(sk_buff, skb));
	return 0;
}

SEC("raw_tp/qdisc_enqueue")
int BPF_PROG(raw_qdisc_enqueue, const struct Qdisc *qdisc, const struct netdev_queue *queue, const struct sk_buff *skb)
{
	ENTER_RAW
	on_qdisc(cpu, CAST(sk_buff, skb), TX_QDISC_ENQUEUE);
	return 0;
}

SEC("raw_tp/qdisc_dequeue")
int BPF_PROG(raw_qdisc_dequeue, const struct Qdisc *qdisc, const struct netdev_queue *queue, int packets,
	     const struct sk_buff *skb)
{
	ENTER_RAW
	if (skb)
		on_qdisc(cpu, CAST(sk_buff, skb), TX_QDISC_DEQUEUE);
	return 0;
}

SEC("raw_tp/net_dev_start_xmit")
int BPF_PROG(raw_net_dev_start_xmit, const struct sk_buff *skb, const struct net_device *dev)
{
	ENTER_RAW
	on_driver(cpu, CAST(sk_buff, skb), CAST(net_device, dev));
	return 0;
}

SEC("raw_tp/net_dev_xmit")
int BPF_PROG(raw_net_dev_xmit, const struct sk_buff *skb, int rc, const struct net_device *dev)
{
	ENTER_RAW
	on_driver_done(cpu, (u64)skb, CAST(net_device, dev));
	return 0;
}

SEC("raw_tp/netif_rx_entry")
int BPF_PROG(raw_netif_rx_entry, const struct sk_buff *skb)
{
	ENTER_RAW
	on_rx_driver(cpu, CAST(sk_buff, skb), false);
	return 0;
}

SEC("raw_tp/napi_gro_receive_entry")
int BPF_PROG(raw_napi_gro_receive_entry, const struct sk_buff *skb)
{
	ENTER_RAW
	on_rx_driver(cpu, CAST(sk_buff, skb), true);
	return 0;
}

SEC("raw_tp/netif_receive_skb_entry")
int BPF_PROG(raw_netif_receive_skb_entry, const struct sk_buff *skb)
{
	ENTER_RAW
	on_rx_driver(cpu, CAST(sk_buff, skb), false);
	return 0;
}

SEC("raw_tp/netif_receive_skb")
int BPF_PROG(raw_netif_receive_skb, const struct sk_buff *skb)
{
	ENTER_RAW
	on_rx_core(cpu, CAST(sk_buff, skb));
	return 0;
}

SEC("raw_tp/tcp_probe")
int BPF_PROG(raw_tcp_probe, const struct sock *sk, const struct sk_buff *skb)
{
	ENTER_RAW
	on_rx_tcp(cpu, CAST(sk_buff, skb), CAST(sock, sk));
	return 0;
}

SEC("raw_tp/sk_data_ready")
int BPF_PROG(raw_sk_data_ready, const struct sock *sk)
{
	ENTER_RAW
	on_socket(cpu, CAST(sock, sk));
	return 0;
}

SEC("raw_tp/sched_waking")
int BPF_PROG(raw_sched_waking, const struct task_struct *task)
{
	ENTER_RAW
	on_waking(cpu, CAST(task_struct, task));
	return 0;
}

SEC("raw_tp/sched_switch")
int BPF_PROG(raw_sched_switch, bool preempted, const struct task_struct *previous, const struct task_struct *next)
{
	ENTER_RAW
	on_switch(cpu, CAST(task_struct, next));
	return 0;
}

SEC("raw_tp/skb_copy_datagram_iovec")
int BPF_PROG(raw_skb_copy_datagram_iovec, const struct sk_buff *skb)
{
	ENTER_RAW
	on_copy(cpu, CAST(sk_buff, skb));
	return 0;
}

SEC("raw_tp/tcp_rcv_space_adjust")
int BPF_PROG(raw_tcp_rcv_space_adjust, const struct sock *sk)
{
	ENTER_RAW
	on_tcp_copied(cpu, CAST(sock, sk));
	return 0;
}

SEC("raw_tp/consume_skb")
int BPF_PROG(raw_consume_skb, const struct sk_buff *skb)
{
	ENTER_RAW
	on_consumed(cpu, CAST(sk_buff, skb));
	return 0;
}

SEC("raw_tp/sock_recv_length")
int BPF_PROG(raw_sock_recv_length, const struct sock *sk, int returned, int flags)
{
	ENTER_RAW
	if (has(RX_COPIED) && CAST(sock, sk)->sk_protocol == PROTOCOL_UDP)
		on_udp_received(cpu, CAST(sock, sk), returned, flags);
	if (has(RX_RECEIVED))
		call_point(cpu, RX_RECEIVED, returned);
	return 0;
}

SEC("raw_tp/kfree_skb")
int BPF_PROG(raw_kfree_skb, const struct sk_buff *skb, const void *location, unsigned int reason)
{
	ENTER_RAW
	on_drop(cpu, CAST(sk_buff, skb), reason);
	return 0;
}
