/* Whether the other end may be charged for a message. Where it may not, a redirected send fails with ENOMEM in the
 * sender (bpf_tcp_ingress, net/ipv4/tcp_bpf.c), where TCP keeps the bytes and tries again. */
#pragma once
#include "state.h"
#include <bpf/bpf_core_read.h>

#define PAGE 4096
/* PAGE_COUNTER_MAX of include/linux/page_counter.h */
#define NO_LIMIT (0x7fffffffffffffffULL / PAGE)
#define LEVELS_MAX 8
/* What processors take in advance (MEMCG_CHARGE_BATCH, include/linux/memcontrol.h). */
#define BATCH 64

/* The counter that the receiver's memory is charged to; NULL: none. */
static __always_inline struct page_counter *charged(struct sock *sk)
{
	struct mem_cgroup *group;

	if (!bpf_core_field_exists(sk->sk_memcg))
		return NULL;
	group = BPF_CORE_READ(sk, sk_memcg);
	if (!group)
		return NULL;
	if (bpf_core_field_exists(group->tcpmem) && BPF_CORE_READ(group, tcpmem_active))
		return (void *)group + bpf_core_field_offset(struct mem_cgroup, tcpmem);
	return (void *)group + bpf_core_field_offset(struct mem_cgroup, memory);
}

/* A quarter of each limit stays free for what others charge meanwhile. `pages` 0: whether there is a limit at all. */
static __noinline bool is_near(struct sock *sk, u64 pages)
{
	struct page_counter *counter = charged(sk);

	for (int n = 0; n < LEVELS_MAX; n++) {
		u64 max, used;

		if (!counter)
			return false;
		max = BPF_CORE_READ(counter, max);
		used = BPF_CORE_READ(counter, usage.counter);
		if (max < NO_LIMIT && (!pages || used + pages + BATCH > max - max / 4))
			return true;
		counter = BPF_CORE_READ(counter, parent);
	}
	/* Deeper than can be looked at. */
	return counter != NULL;
}

/* Of all sockets together (tcp_mem, tcp(7)): above the second value the kernel refuses what is not needed. */
static __always_inline bool is_pressed(struct sock *sk, int level)
{
	struct proto *proto = BPF_CORE_READ(sk, __sk_common.skc_prot);
	long *limits = BPF_CORE_READ(proto, sysctl_mem), limit = 0;

	if (!limits || bpf_probe_read_kernel(&limit, sizeof(limit), limits + level))
		return false;
	return BPF_CORE_READ(proto, memory_allocated, counter) > limit;
}

/* Found out again at each look of the guard. */
static __always_inline bool has_memory(struct end *own, u64 size)
{
	struct sock *receiver = (struct sock *)own->peer.sock;

	if (own->memory == MEMORY_UNKNOWN)
		own->memory = is_near(receiver, 0) || is_pressed(receiver, 0) ? MEMORY_LIMITED : MEMORY_FREE;
	if (own->memory == MEMORY_FREE)
		return true;
	return !is_near(receiver, 2 * size / PAGE + 1) && !is_pressed(receiver, 1);
}
