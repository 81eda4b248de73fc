/* Tasks that sleep in a call on a socket. */
#pragma once
#include <kernel.h>
#include <bpf/bpf_core_read.h>

/* So many waiters are looked at; more are as if one more slept. */
#define WAITERS_MAX 8

/* The waiter that a call puts into a socket's queue has the sleeping thread for its `private` (DEFINE_WAIT_FUNC,
 * include/linux/wait.h); those of epoll and poll have something else: a leader is its own leader. */
static __noinline struct task_struct *leader_of(void *waiter)
{
	struct task_struct *leader = NULL, *again = NULL;
	u32 at = bpf_core_field_offset(struct task_struct, group_leader);

	if (!waiter || bpf_probe_read_kernel(&leader, sizeof(leader), waiter + at) || !leader ||
	    bpf_probe_read_kernel(&again, sizeof(again), (void *)leader + at))
		return NULL;
	return leader == again ? leader : NULL;
}

static __noinline u32 tasks_asleep(struct sock *sock)
{
	struct socket_wq *queue = BPF_CORE_READ(sock, sk_wq);
	void *head = (void *)queue + bpf_core_field_offset(struct socket_wq, wait) +
		     bpf_core_field_offset(struct wait_queue_head, head);
	void *link = BPF_CORE_READ(queue, wait.head.next);
	u32 found = 0;

	for (int n = 0; n < WAITERS_MAX; n++) {
		struct wait_queue_entry *waiter;

		if (!link || link == head)
			return found;
		waiter = link - bpf_core_field_offset(struct wait_queue_entry, entry);
		if (leader_of(BPF_CORE_READ(waiter, private)))
			found++;
		link = BPF_CORE_READ(waiter, entry.next);
	}
	return found + 1;
}
