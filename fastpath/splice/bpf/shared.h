/* Two threads in calls on one connection: where one waits in recv while the other sends, room to send wakes
 * both, and the one that receives is told EAGAIN, which a blocking call must not be told: at joined sockets
 * the kernel waits once (tcp_bpf_recvmsg, net/ipv4/tcp_bpf.c). User space decides what becomes of it. */
#pragma once
#include "state.h"
#include "waiters.h"
#include <bpf/bpf_core_read.h>

static __always_inline bool is_other_thread(void *waiter)
{
	struct task_struct *own = (void *)bpf_get_current_task();
	struct task_struct *leader = leader_of(waiter);

	return leader && waiter != own && leader == BPF_CORE_READ(own, group_leader);
}

static __noinline bool has_thread_asleep(const struct end *own)
{
	struct sock *sock = (struct sock *)own->sock;
	struct socket_wq *queue = BPF_CORE_READ(sock, sk_wq);
	void *head = (void *)queue + bpf_core_field_offset(struct socket_wq, wait) +
		     bpf_core_field_offset(struct wait_queue_head, head);
	void *link = BPF_CORE_READ(queue, wait.head.next);

	for (int n = 0; n < WAITERS_MAX; n++) {
		struct wait_queue_entry *waiter;

		if (!link || link == head)
			return false;
		waiter = link - bpf_core_field_offset(struct wait_queue_entry, entry);
		if (is_other_thread(BPF_CORE_READ(waiter, private)))
			return true;
		link = BPF_CORE_READ(waiter, entry.next);
	}
	return false;
}

/* Once for each end: it costs a few reads. */
static __always_inline void look_for_threads(struct sk_msg_md *msg, struct end *own)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	const unsigned char *file;
	struct program_name name = {};
	struct sharing sharing = {};

	if (own->is_shared || !has_thread_asleep(own))
		return;
	own->is_shared = 1;
	count(COUNT_SHARED_BY_THREADS);
	file = BPF_CORE_READ(task, mm, exe_file, f_path.dentry, d_name.name);
	bpf_probe_read_kernel_str(name.of, sizeof(name.of), file);
	sharing.pid = bpf_get_current_pid_tgid() >> 32;
	sharing.is_server = own->is_server;
	sharing.listener.netns = bpf_get_netns_cookie(msg);
	sharing.listener.port = msg->local_port;
	bpf_map_update_elem(&splice_sharing, &name, &sharing, BPF_ANY);
}
