/* Whether what one program sent is what the other received: both sums of each direction, compared once
 * both programs have closed their ends. Nothing of this is asked of the way that the bytes take. */
#pragma once
#include "state.h"
#include <bpf/bpf_core_read.h>

/* By socket cookie. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, struct watched);
} splice_watched SEC(".maps");

/* By the sender's cookie; the first ones only. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u64);
	__type(value, struct wrong);
} splice_wrong SEC(".maps");

/* Processes that use io_uring or asynchronous I/O. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u32);
	__type(value, u32);
} uses_rings SEC(".maps");

static __always_inline struct watched *watched_of(u64 cookie)
{
	return bpf_map_lookup_elem(&splice_watched, &cookie);
}

/* A socket has joined; `client`: of a server's end. */
static __always_inline void verify_join(struct bpf_sock_ops *ops, const struct end *own,
					const struct peer *client)
{
	struct watched new = {.is_server = client != NULL, .cookie = own->cookie, .sock = own->sock};

	name_of(ops, client == NULL, &new.name);
	if (client)
		new.peer = client->cookie;
	new.first_seq = FIELD(ops, snd_nxt);
	/* With the SYN (RFC 7413): before anybody watched. */
	if (FIELD(ops, data_segs_out))
		new.sent.doubts = DOUBT_EARLY;
	/* Whoever finds no entry later says so. */
	bpf_map_update_elem(&splice_watched, &own->cookie, &new, BPF_ANY);
}

/* Both ends have joined. */
static __always_inline void verify_meet(const struct end *server)
{
	struct watched *client = watched_of(server->peer.cookie);

	if (client && watched_of(server->cookie)) {
		client->peer = server->cookie;
		return;
	}
	count_more(COUNT_UNVERIFIED_FULL, 2);
	bpf_map_delete_elem(&splice_watched, &server->peer.cookie);
	bpf_map_delete_elem(&splice_watched, &server->cookie);
}

static __always_inline void verify_direct(u64 cookie, u64 bytes)
{
	struct watched *end = watched_of(cookie);

	if (end)
		end->direct += bytes;
}

/* What the kernel took of this socket, by either way, is what its program's calls were seen to send; a
 * FIN has a place in TCP's count. Counts of TCP are modulo 2^32 (RFC 9293 section 3.4). */
static __always_inline void see_kernels_count(struct watched *end)
{
	struct sock *sk = (struct sock *)end->sock;
	u32 by_tcp = BPF_CORE_READ((struct tcp_sock *)sk, write_seq) - end->first_seq;
	u32 more = by_tcp - (u32)(end->sent.bytes - end->direct);

	if (more == 1 && BPF_CORE_READ(sk, sk_shutdown) & SEND_SHUTDOWN)
		more = 0;
	if (more)
		end->sent.doubts |= DOUBT_UNSEEN;
}

static __always_inline void wrong(const struct watched *from, const struct way *sent,
				  const struct way *received, enum wrong_kind kind)
{
	struct wrong line = {from->name, from->is_server, sent->bytes, received->bytes, kind};

	count(COUNT_MISMATCHED);
	bpf_map_update_elem(&splice_wrong, &from->cookie, &line, BPF_ANY);
}

static __noinline int compare(struct watched *from, struct watched *to)
{
	struct way *sent, *received;
	u32 doubts;

	if (!from || !to)
		return 0;
	sent = &from->sent;
	received = &to->received;
	doubts = sent->doubts | received->doubts;
	if (doubts & DOUBT_TOGETHER)
		count(COUNT_UNVERIFIED_TOGETHER);
	else if (doubts & DOUBT_UNREADABLE)
		count(COUNT_UNVERIFIED_UNREADABLE);
	else if (doubts & DOUBT_EARLY)
		count(COUNT_UNVERIFIED_EARLY);
	else if (doubts & DOUBT_UNSEEN)
		count(COUNT_UNVERIFIED_UNSEEN);
	else if (received->bytes > sent->bytes)
		wrong(from, sent, received, WRONG_MORE);
	else if (received->bytes < sent->bytes) {
		if (doubts & DOUBT_OTHERS)
			count(COUNT_UNVERIFIED_UNSEEN);
		else if (!(doubts & IS_AT_END))
			count(COUNT_UNVERIFIED_UNREAD);
		else
			wrong(from, sent, received, WRONG_MISSING);
	} else if (sent->sum != received->sum || sent->rest != received->rest)
		wrong(from, sent, received, WRONG_BYTES);
	else {
		count(COUNT_VERIFIED);
		count_more(COUNT_VERIFIED_BYTES, sent->bytes);
	}
	return 0;
}

static __always_inline void forget(u64 one, u64 other)
{
	bpf_map_delete_elem(&splice_watched, &one);
	bpf_map_delete_elem(&splice_watched, &other);
}

/* The program of one end is done with it. The second one compares; both count at the client's. */
static __noinline int leave(struct watched *end)
{
	struct watched *client, *server;
	u64 own, other;

	if (!end)
		return 0;
	own = end->cookie;
	other = end->peer;
	client = end->is_server ? watched_of(other) : end;
	if (!client) {
		count_more(COUNT_UNVERIFIED_FULL, 2);
		bpf_map_delete_elem(&splice_watched, &own);
		return 0;
	}
	if (__sync_fetch_and_add(&client->ends_closed, 1) == 0)
		return 0;
	other = end->peer;
	server = end->is_server ? end : watched_of(other);
	if (server) {
		compare(client, server);
		compare(server, client);
	} else {
		count_more(COUNT_UNVERIFIED_FULL, 2);
	}
	forget(own, other);
	return 0;
}

/* By its program, in the middle: what was on its way is in doubt. */
static __always_inline void verify_disconnected(u64 cookie)
{
	struct watched *end = watched_of(cookie);

	if (!end)
		return;
	if (end->peer)
		count_more(COUNT_UNVERIFIED_UNREAD, 2);
	forget(cookie, end->peer);
}

static __always_inline void verify_released(u64 cookie)
{
	struct watched *end = watched_of(cookie);
	u32 process = bpf_get_current_pid_tgid() >> 32;
	struct sock *sk;

	if (!end || __sync_lock_test_and_set(&end->is_closed, 1))
		return;
	see_kernels_count(end);
	if (bpf_map_lookup_elem(&uses_rings, &process))
		end->received.doubts |= DOUBT_OTHERS;
	sk = (struct sock *)end->sock;
	/* A client that no server's end was ever found for. */
	if (!end->is_server && !end->peer && BPF_CORE_READ(sk, __sk_common.skc_state) == TCP_CLOSE)
		bpf_map_delete_elem(&splice_watched, &cookie);
	else
		leave(end);
}

/* The connection is over. Its program may read what is left, unless there is none: the connection was
 * never accepted. */
static __always_inline void verify_closed(const struct end *own)
{
	struct sock *sk = (struct sock *)own->sock;
	struct watched *end = watched_of(own->cookie);

	if (!end || BPF_CORE_READ(sk, sk_socket))
		return;
	if (!__sync_lock_test_and_set(&end->is_closed, 1))
		leave(end);
	else if (!end->is_server && !end->peer)
		bpf_map_delete_elem(&splice_watched, &own->cookie);
}
