/* A close with bytes unread is a reset (RFC 2525 section 2.17). The kernel looks for them in TCP's queue alone
 * (__tcp_close, net/ipv4/tcp.c), finds none there, and sends a FIN. */
#pragma once
#include "in_flight.h"
#include "queue.h"
#include "state.h"

/* Ends that were closed with bytes unread, and whose FIN was not seen yet (reset_packets.h). */
s64 resets_due SEC(".data.resets");

static __always_inline void expect_fin(struct end *own)
{
	if (control.resets && !__sync_lock_test_and_set(&own->resets, 1))
		__sync_fetch_and_add(&resets_due, 1);
}

static __always_inline void closed_unread(struct end *own)
{
	if (__sync_lock_test_and_set(&own->close, CLOSE_UNREAD) == CLOSE_UNREAD)
		return;
	count(COUNT_CLOSED_UNREAD);
	expect_fin(own);
}

/* So often is it looked whether messages have arrived: some milliseconds, where a sender has lost its processor amid a
 * send. */
#define ARRIVAL_LOOKS_MAX 32768

static long look_for_arrival(u32 n, struct end **own)
{
	return !has_in_flight(*own);
}

/* Its program can receive no more. In this order: a message is in flight before its sender looks whether a close has begun;
 * one that is in flight now is waited for, none comes later. */
static __always_inline void on_closing(struct end *own)
{
	struct end *waits = own;
	bool in_flight = false;

	if (own->close > CLOSE_SHUT)
		return;
	if (control.in_flight && has_met(own)) {
		/* A barrier, too. */
		__sync_lock_test_and_set(&own->close, CLOSE_BEGUN);
		bpf_loop(ARRIVAL_LOOKS_MAX, look_for_arrival, &waits, 0);
		own->redirected_before = redirected_to(own, 0);
		in_flight = has_in_flight(own);
	}
	if (in_flight || has_queued((struct sock *)own->sock))
		closed_unread(own);
}

/* Nothing of the other end's is unread here, nor comes. */
static __always_inline bool is_settled(struct end *own)
{
	struct tcp_sock *tcp = (struct tcp_sock *)own->sock;

	return control.in_flight && !has_in_flight(own) && !has_queued((struct sock *)tcp) &&
	       BPF_CORE_READ(tcp, rcv_nxt) == BPF_CORE_READ(tcp, copied_seq);
}

/* At a socket in the map, and there alone, a send of no bytes that comes behind this says nothing (tcp_bpf_sendmsg). True
 * where it may leave the map at once; else it leaves once what is unread is read. In this order, as at a close. */
static __always_inline bool on_shut(struct end *own)
{
	if (!own->is_joined || own->close)
		return false;
	own->leaving = 1;
	__sync_lock_test_and_set(&own->close, CLOSE_SHUT);
	has_met(own);
	return is_settled(own);
}

/* It is out of the map, and no message comes any more: one that was to come since is lost. */
static __always_inline void on_closed(struct end *own)
{
	if (own->close == CLOSE_BEGUN && redirected_to(own, own->redirected_before) > own->redirected_before)
		closed_unread(own);
}

/* True where it was expected. */
static __always_inline bool end_expecting(struct end *own)
{
	if (!__sync_lock_test_and_set(&own->resets, 0))
		return false;
	__sync_fetch_and_add(&resets_due, -1);
	return true;
}
