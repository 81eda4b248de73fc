/* A program a hook. User space loads those that the points ask for and this kernel has. */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#include "read.h"

char LICENSE[] SEC("license") = "GPL";

extern void *bpf_cast_to_kern_ctx(void *) __ksym __weak;

#define ENTER                                     \
	struct cpu_state *cpu = this_cpu();       \
	if (!is_on(cpu))                          \
		return 0;

#define ENTER_FILTER                              \
	struct cpu_state *cpu = this_cpu();       \
	if (!is_on(cpu))                          \
		return 1;

SEC("tp_btf/sys_enter")
int BPF_PROG(tp_sys_enter, struct pt_regs *regs, long nr)
{
	ENTER
	on_sys_enter(cpu, nr, regs->di);
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(tp_sys_exit, struct pt_regs *regs, long returned)
{
	ENTER
	call_point(cpu, RX_RETURN, returned);
	return 0;
}

SEC("tp_btf/tcp_sendmsg_locked")
int BPF_PROG(tp_tcp_sendmsg_locked, const struct sock *sk, const struct msghdr *msg)
{
	ENTER
	on_tcp_send(cpu, sk, msg->msg_iter.count);
	return 0;
}

SEC("cgroup_skb/egress")
int cgroup_egress(struct __sk_buff *ctx)
{
	struct sk_buff *skb;

	ENTER_FILTER
	if (bpf_ksym_exists(bpf_cast_to_kern_ctx)) {
		skb = bpf_cast_to_kern_ctx(ctx);
		on_ip_out(cpu, skb);
		if (config.snap)
			keep_pages(ctx, skb);
	}
	return 1;
}

SEC("tp_btf/net_dev_queue")
int BPF_PROG(tp_net_dev_queue, struct sk_buff *skb)
{
	ENTER
	on_dev_queue(cpu, skb);
	return 0;
}

SEC("tp_btf/qdisc_enqueue")
int BPF_PROG(tp_qdisc_enqueue, struct Qdisc *qdisc, const struct netdev_queue *queue, struct sk_buff *skb)
{
	ENTER
	on_qdisc(cpu, skb, TX_QDISC_ENQUEUE);
	return 0;
}

SEC("tp_btf/qdisc_dequeue")
int BPF_PROG(tp_qdisc_dequeue, struct Qdisc *qdisc, const struct netdev_queue *queue, int packets,
	     struct sk_buff *skb)
{
	ENTER
	if (skb)
		on_qdisc(cpu, skb, TX_QDISC_DEQUEUE);
	return 0;
}

SEC("tp_btf/net_dev_start_xmit")
int BPF_PROG(tp_net_dev_start_xmit, const struct sk_buff *skb, const struct net_device *dev)
{
	ENTER
	on_driver(cpu, skb, dev);
	return 0;
}

SEC("tp_btf/net_dev_xmit")
int BPF_PROG(tp_net_dev_xmit, struct sk_buff *skb, int rc, struct net_device *dev)
{
	ENTER
	on_driver_done(cpu, (u64)skb, dev);
	return 0;
}

SEC("tp_btf/netif_rx_entry")
int BPF_PROG(tp_netif_rx_entry, const struct sk_buff *skb)
{
	ENTER
	on_rx_driver(cpu, skb, false);
	return 0;
}

SEC("tp_btf/napi_gro_receive_entry")
int BPF_PROG(tp_napi_gro_receive_entry, const struct sk_buff *skb)
{
	ENTER
	on_rx_driver(cpu, skb, true);
	return 0;
}

SEC("tp_btf/netif_receive_skb_entry")
int BPF_PROG(tp_netif_receive_skb_entry, const struct sk_buff *skb)
{
	ENTER
	on_rx_driver(cpu, skb, false);
	return 0;
}

SEC("tp_btf/netif_receive_skb")
int BPF_PROG(tp_netif_receive_skb, struct sk_buff *skb)
{
	ENTER
	on_rx_core(cpu, skb);
	return 0;
}

SEC("cgroup_skb/ingress")
int cgroup_ingress(struct __sk_buff *ctx)
{
	struct sk_buff *skb;

	ENTER_FILTER
	if (bpf_ksym_exists(bpf_cast_to_kern_ctx)) {
		skb = bpf_cast_to_kern_ctx(ctx);
		if (config.snap)
			keep_pages(ctx, skb);
		on_rx_ip(cpu, skb, skb->sk);
	}
	return 1;
}

SEC("tp_btf/tcp_probe")
int BPF_PROG(tp_tcp_probe, struct sock *sk, const struct sk_buff *skb)
{
	ENTER
	on_rx_tcp(cpu, skb, sk);
	return 0;
}

SEC("tp_btf/sk_data_ready")
int BPF_PROG(tp_sk_data_ready, const struct sock *sk)
{
	ENTER
	on_socket(cpu, sk);
	return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(tp_sched_waking, struct task_struct *task)
{
	ENTER
	on_waking(cpu, task);
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(tp_sched_switch, bool preempted, struct task_struct *previous, struct task_struct *next)
{
	ENTER
	on_switch(cpu, next);
	return 0;
}

SEC("tp_btf/skb_copy_datagram_iovec")
int BPF_PROG(tp_skb_copy_datagram_iovec, const struct sk_buff *skb, int len)
{
	ENTER
	on_copy(cpu, skb);
	return 0;
}

SEC("tp_btf/tcp_rcv_space_adjust")
int BPF_PROG(tp_tcp_rcv_space_adjust, struct sock *sk)
{
	ENTER
	on_tcp_copied(cpu, sk);
	return 0;
}

SEC("tp_btf/consume_skb")
int BPF_PROG(tp_consume_skb, struct sk_buff *skb)
{
	ENTER
	on_consumed(cpu, skb);
	return 0;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(tp_sock_recv_length, struct sock *sk, int returned, int flags)
{
	ENTER
	if (has(RX_COPIED) && sk->sk_protocol == PROTOCOL_UDP)
		on_udp_received(cpu, sk, returned, flags);
	if (has(RX_RECEIVED))
		call_point(cpu, RX_RECEIVED, returned);
	return 0;
}

SEC("tp_btf/kfree_skb")
int BPF_PROG(tp_kfree_skb, struct sk_buff *skb, void *location, unsigned int reason)
{
	ENTER
	on_drop(cpu, skb, reason);
	return 0;
}

#include "functions.h"
#include "raw.h"
#include "calibrate.h"
