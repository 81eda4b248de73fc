/* Whether a message that an end was to redirect may still come into the other one's queue (in_flight.h): what both have
 * noted of it. */
#pragma once
#include "end.h"
#include <bpf/bpf_core_read.h>

/* What was read of the other end's is its: it may be gone, and another one's lie there. */
static __always_inline bool is_peers(const struct end *own)
{
	const struct end *other = (struct end *)own->peer.end;
	u64 cookie = 0;

	return !bpf_probe_read_kernel(&cookie, sizeof(cookie), &other->cookie) && cookie == own->peer.cookie;
}

/* A call on it holds its psock, as the map does. Without one nothing is in flight, whatever was noted. */
static __always_inline bool is_in_call(struct sock *sk)
{
	struct sk_psock *psock = (void *)SOCK_DATA_POINTER((u64)BPF_CORE_READ(sk, sk_user_data));

	return psock && BPF_CORE_READ(psock, refcnt.refs.counter) > 1;
}

/* A message of the other end's that this one's program can never read: asked once the other end begins no more. */
static __noinline bool has_in_flight(const struct end *own)
{
	const struct end *other = (struct end *)own->peer.end;
	struct in_flight theirs[IN_FLIGHT_MAX] = {};
	bool is_noted = false;

	if (bpf_probe_read_kernel(theirs, sizeof(theirs), other->in_flight) || !is_peers(own))
		return false;
	for (u32 n = 0; n < IN_FLIGHT_MAX; n++)
		if (theirs[n].thread && theirs[n].message != own->arrived[n])
			is_noted = true;
	return is_noted && is_in_call((struct sock *)own->peer.sock);
}
