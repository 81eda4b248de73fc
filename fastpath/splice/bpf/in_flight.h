/* Messages that were to be redirected and are not in the other end's queue yet: a close does not find them there, and what
 * comes behind it is thrown away (sk_psock_queue_msg, include/linux/skmsg.h), where TCP resets the connection.
 * One is in flight from its verdict until `sk_data_ready`, which the kernel calls behind it with the receiver locked
 * (bpf_tcp_ingress, net/ipv4/tcp_bpf.c): before it can be read. The end of its send ends it, too: it may fail. */
#pragma once
#include "arrivals.h"
#include "state.h"
#include <bpf/bpf_core_read.h>

static __always_inline bool has_met(struct end *own)
{
	/* Kernels before 6.3 take no key from an iterator's value. */
	u64 cookie = own->cookie;
	struct peer *found;

	if (own->peer.cookie)
		return true;
	found = bpf_map_lookup_elem(&splice_met, &cookie);
	/* Another program of this end may have come first. */
	if (!found)
		return own->peer.cookie != 0;
	own->peer = *found;
	bpf_map_delete_elem(&splice_met, &cookie);
	return true;
}

/* Where this thread's message is noted; IN_FLIGHT_MAX: so many other threads are in sends. */
static __always_inline u32 place_in_flight(const struct end *own)
{
	u64 thread = bpf_get_current_pid_tgid();
	u32 place = IN_FLIGHT_MAX;

	for (u32 n = 0; n < IN_FLIGHT_MAX; n++) {
		if (own->in_flight[n].thread == thread)
			return n;
		if (!own->in_flight[n].thread && place == IN_FLIGHT_MAX)
			place = n;
	}
	return place;
}

/* By the sender, which has its socket locked. Before it looks for the receiver in the map: a close takes that out, and looks
 * at `redirected` afterwards. */
static __always_inline void begin_flight(struct end *own, u32 place)
{
	if (!control.in_flight || place >= IN_FLIGHT_MAX)
		return;
	own->in_flight[place].message = own->redirected + 1;
	asm volatile("" ::: "memory");
	own->in_flight[place].thread = bpf_get_current_pid_tgid();
	__sync_fetch_and_add(&own->redirected, 1);
}

/* The other end's close waits for what was in flight before it began (resets.h). A message that begins later finds that it
 * has begun, and takes TCP, which accepts it: the kernel would find no map any more, and send would fail with EPIPE
 * (tcp_bpf_sendmsg_redir, net/ipv4/tcp_bpf.c). */
static __noinline bool is_peer_closing(const struct end *own)
{
	const struct end *other = (struct end *)own->peer.end;
	u32 close = CLOSE_NONE;

	return !bpf_probe_read_kernel(&close, sizeof(close), &other->close) && close != CLOSE_NONE && is_peers(own);
}

/* Asked once it is in flight: what user space does not find in flight after it had it leave never comes (arrivals.h). */
static __always_inline bool is_to_leave(const struct end *own)
{
	return *(volatile const u32 *)&own->leaving || *(volatile u32 *)&control.stop;
}

/* It takes TCP after all. */
static __always_inline void cancel_flight(struct end *own, u32 place)
{
	if (!control.in_flight || place >= IN_FLIGHT_MAX)
		return;
	own->in_flight[place].thread = 0;
	__sync_fetch_and_add(&own->redirected, -1);
}

/* Its send is over. */
static __always_inline void end_flight(struct end *own)
{
	u64 thread = bpf_get_current_pid_tgid();

	for (u32 n = 0; n < IN_FLIGHT_MAX; n++)
		if (own->in_flight[n].thread == thread)
			own->in_flight[n].thread = 0;
}

/* By the sender, too: its message is in this end's queue, which it has locked. TCP's own bytes may come with the same thread
 * interrupted before that: then nobody has it locked, or they wait until it is released. */
static __always_inline void note_arrival(struct end *own)
{
	u64 thread = bpf_get_current_pid_tgid();
	struct in_flight one;
	struct end *other;

	if (!has_met(own))
		return;
	other = (struct end *)own->peer.end;
	/* Mostly the first is all that there are. */
	for (u32 n = 0; n < IN_FLIGHT_MAX; n++) {
		if (bpf_probe_read_kernel(&one, sizeof(one), &other->in_flight[n]))
			return;
		if (one.thread != thread)
			continue;
		own->arrived[n] = one.message;
		return;
	}
}

/* Messages that the other end was to redirect, ever; `known` where that cannot be said. */
static __noinline u64 redirected_to(const struct end *own, u64 known)
{
	const struct end *other = (struct end *)own->peer.end;
	u64 messages = 0;

	if (bpf_probe_read_kernel(&messages, sizeof(messages), &other->redirected) || !is_peers(own))
		return known;
	return messages;
}
