/* The guard: how much may lie unread at the other end, and when the way may change without bytes
 * overtaking others. */
#pragma once
#include "state.h"
#include "waiters.h"
#include <bpf/bpf_core_read.h>

/* Of a message in the queue of the other end, beside its bytes: struct sk_msg as kmalloc rounds it.
 * The kernel charges it to nobody. */
#define MESSAGE_COST 1024

static __always_inline bool is_still(const struct peer *peer)
{
	struct sock *sock = (struct sock *)peer->sock;

	return (u64)BPF_CORE_READ(sock, __sk_common.skc_cookie.counter) == peer->cookie;
}

/* Bytes that were handed over and are not read, at most. */
static __always_inline u64 unread(struct end *own)
{
	struct sock *sock = (struct sock *)own->peer.sock;
	struct sk_psock *psock =
		(void *)SOCK_DATA_POINTER((u64)BPF_CORE_READ(sock, sk_user_data));
	u64 queue, first;

	if (bpf_core_field_exists(psock->msg_tot_len))
		return BPF_CORE_READ(psock, msg_tot_len);
	/* Older kernels only tell whether there is anything. */
	queue = (u64)psock + bpf_core_field_offset(struct sk_psock, ingress_msg);
	first = (u64)BPF_CORE_READ(psock, ingress_msg.next);
	return first == queue ? 0 : own->sent.bytes - own->read.bytes;
}

/* As much as plain TCP would take: what the receiver may buffer and what the sender may. */
static __always_inline u64 limit(const struct end *own)
{
	struct sock *sender = (struct sock *)own->sock;
	struct sock *receiver = (struct sock *)own->peer.sock;
	u64 sum = (u64)BPF_CORE_READ(sender, sk_sndbuf) + (u64)BPF_CORE_READ(receiver, sk_rcvbuf);

	return sum < control.limit_bytes ? sum : control.limit_bytes;
}

/* Looks at the other end, and gives credit for what surely fits. Messages are read in order, so what
 * was sent before a position whose bytes are read costs nothing any more. */
static __noinline bool look(struct end *own, u64 need)
{
	u64 most, left, outstanding, credit;

	if (!is_still(&own->peer))
		return false;
	left = unread(own);
	if (left == 0)
		own->read = own->sent;
	else if (own->sent.bytes - own->looks[0].bytes >= left)
		own->read = own->looks[0];
	else if (own->sent.bytes - own->looks[1].bytes >= left)
		own->read = own->looks[1];
	own->looks[1] = own->looks[0];
	own->looks[0] = own->sent;
	outstanding = own->sent.cost - own->read.cost;
	most = limit(own);
	own->memory = MEMORY_UNKNOWN;
	if (outstanding + need > most)
		return false;
	/* Half of what is left: the next look is early enough to see it shrink. */
	credit = (most - outstanding) / 2;
	own->credit = credit > need ? credit : need;
	return true;
}

static __always_inline bool has_room(struct end *own, u64 size)
{
	s64 need = size + MESSAGE_COST;

	if (own->credit < need && !look(own, need))
		return false;
	own->credit -= need;
	own->sent.bytes += size;
	own->sent.cost += need;
	return true;
}

/* Whether everything that went through TCP has been read: then, and only then, the short cut cannot
 * overtake it. */
static __noinline bool is_all_read(const struct end *own)
{
	struct tcp_sock *sender = (struct tcp_sock *)own->sock;
	struct tcp_sock *receiver = (struct tcp_sock *)own->peer.sock;

	if (BPF_CORE_READ(sender, write_seq) != BPF_CORE_READ(sender, snd_una))
		return false;
	if (BPF_CORE_READ(receiver, copied_seq) != BPF_CORE_READ(receiver, rcv_nxt))
		return false;
	return is_still(&own->peer);
}

/* Whether a task of the other end sleeps in TCP's own receive, which does not see redirected bytes: with
 * MSG_WAITALL, and with SO_RCVLOWAT, it goes on waiting after some of them. A receive that waits for both holds
 * the psock meanwhile (tcp_bpf_recvmsg). One that runs may come to sleep after this look. */
static __noinline bool waits_for_tcp(const struct end *own)
{
	struct sock *sock = (struct sock *)own->peer.sock;
	struct sk_psock *psock =
		(void *)SOCK_DATA_POINTER((u64)BPF_CORE_READ(sock, sk_user_data));
	u32 asleep;

	if (BPF_CORE_READ(sock, sk_lock.owned))
		return true;
	asleep = tasks_asleep(sock);
	if (BPF_CORE_READ(sock, sk_lock.owned))
		return true;
	return asleep && asleep + 1 > (u32)BPF_CORE_READ(psock, refcnt.refs.counter);
}
