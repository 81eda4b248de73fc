/* What user space has decided about an end is done here: only a program of the kernel's iterator may put a socket
 * into the map that it did not open. */
#pragma once
#include "gather.h"
#include "in_flight.h"
#include "state.h"
#include "waiters.h"
#include <bpf/bpf_core_read.h>

#define O_NONBLOCK 04000

/* What the decision rests on may have changed since. */
static __always_inline bool reads_without_waiting(struct sock *sk)
{
	struct file *file = BPF_CORE_READ(sk, sk_socket, file);

	return file && BPF_CORE_READ(file, f_flags) & O_NONBLOCK && !tasks_asleep(sk);
}

static __always_inline void on_order_join(struct sock *sk, struct end *own)
{
	u64 cookie = own->cookie;
	u32 *incompatible;

	if (own->stage != STAGE_WATCHED || control.stop)
		return;
	incompatible = bpf_map_lookup_elem(&splice_incompatible_ends, &cookie);
	if (incompatible) {
		own->incompatible = *incompatible;
		return;
	}
	if (!reads_without_waiting(sk)) {
		own->stage = STAGE_OUT;
		count(COUNT_BLOCKING);
		return;
	}
	if (!take_place()) {
		own->stage = STAGE_OUT;
		return;
	}
	if (bpf_map_update_elem(&splice_socks, &cookie, sk, BPF_ANY)) {
		__sync_fetch_and_add(&control.ends_now, -1);
		own->stage = STAGE_OUT;
		count(COUNT_MAP_ERROR);
		return;
	}
	own->stage = STAGE_JOINED;
	own->mode = MODE_TCP;
	own->is_followed = control.in_flight;
	own->is_joined = 1;
	count(COUNT_ENDS_JOINED);
}

static __always_inline void on_order_release(struct sock *sk, struct end *own)
{
	u64 cookie = own->cookie;

	/* Its end was counted. */
	if (__sync_lock_test_and_set(&own->lingers, 0)) {
		bpf_map_delete_elem(&splice_socks, &cookie);
		return;
	}
	/* TCP's bytes may be on their way into the queue: with a later look. */
	if (is_gathered(sk))
		return;
	own->stage = STAGE_OUT;
	own->is_open = 0;
	if (!__sync_lock_test_and_set(&own->is_joined, 0))
		return;
	bpf_map_delete_elem(&splice_socks, &cookie);
	__sync_fetch_and_add(&control.ends_now, -1);
	count(COUNT_ENDS_LEFT);
}

SEC("iter/bpf_sk_storage_map")
int splice_order(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct end *own = ctx->value;
	struct sock *sk = ctx->sk;
	struct order_entry *found, order;
	u64 cookie;

	if (!sk || !own)
		return 0;
	cookie = own->cookie;
	found = bpf_map_lookup_elem(&splice_orders, &cookie);
	if (!found)
		return 0;
	order = *found;
	bpf_map_delete_elem(&splice_orders, &cookie);
	if (order.reason < COUNT_MAX)
		count(order.reason);
	switch (order.order) {
	case ORDER_JOIN:
		on_order_join(sk, own);
		break;
	case ORDER_OPEN:
		/* Whose messages are looked for (arrivals.h), before there are any. */
		has_met(own);
		own->is_open = 1;
		if (own->is_server)
			count(COUNT_CONNECTIONS);
		break;
	case ORDER_LEAVE:
		own->leaving = 1;
		break;
	case ORDER_RELEASE:
		on_order_release(sk, own);
		break;
	case ORDER_GATHER:
		on_order_gather(sk, own);
		break;
	}
	return 0;
}
