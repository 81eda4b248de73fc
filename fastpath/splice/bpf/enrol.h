/* Who takes part. A socket joins only with its other end:
 *  1. a SYN reaches a listener of a chosen group: the connection is noted in `asked`;
 *  2. the client is established; if its connection was noted, it joins and waits;
 *  3. the server's end is established; if its client waits, it joins, and both know each other.
 * The three happen in this order (RFC 9293 section 3.5). A connection that is not noted, or whose
 * sequence numbers differ because something sits between the ends, stays plain TCP. */
#pragma once
#include "incompatible.h"
#include "queue.h"
#include "resets.h"
#include "state.h"
#include "verify.h"
#include <bpf/bpf_core_read.h>

static __always_inline bool is_program_refused(void)
{
	struct file_id file = program_file();
	enum name_is is = program_is();
	/* bpf_get_current_pid_tgid is for sockops since 6.10 only. */
	struct task_struct *task = (void *)bpf_get_current_task();

	if (is || (u32)BPF_CORE_READ(task, tgid) == control.pid)
		/* hopscope's own, of its trials: what another process of the same file does is not its. */
		return is == NAME_REFUSED;
	return bpf_map_lookup_elem(&splice_incompatible, &file) != NULL;
}

/* Its messages take TCP from now on. */
static __always_inline void end_joining(struct end *own)
{
	bpf_map_delete_elem(&splice_met, &own->cookie);
	own->stage = STAGE_OUT;
	own->mode = MODE_ALONE;
	own->is_open = 0;
	if (__sync_lock_test_and_set(&own->is_joined, 0)) {
		__sync_fetch_and_add(&control.ends_now, -1);
		count(COUNT_ENDS_LEFT);
	}
}

/* A socket that was disconnected (connect(2), AF_UNSPEC) begins something new: what is unread of its last connection
 * must not appear there, nor may its bytes go to the last one's peer. */
static __always_inline void on_reuse(struct bpf_sock *sk)
{
	struct end *own = bpf_sk_storage_get(&splice_ends, sk, NULL, 0);
	u32 incompatible;

	if (!own || own->stage == STAGE_NONE)
		return;
	bpf_map_delete_elem(&splice_socks, &own->cookie);
	end_joining(own);
	end_expecting(own);
	if (control.verify)
		verify_disconnected(own->cookie);
	/* An option stays set. */
	incompatible = own->incompatible == INCOMPATIBLE_OPTION ? INCOMPATIBLE_OPTION : COMPATIBLE;
	__builtin_memset(own, 0, sizeof(*own));
	own->incompatible = incompatible;
}

static __always_inline void on_listen(struct bpf_sock_ops *ops)
{
	struct listener here = {bpf_get_netns_cookie(ops), local_port_of(ops)};
	struct bpf_sock *sk = ops->sk;
	u32 one = 1;

	if (sk)
		on_reuse(sk);
	if (is_program_refused())
		bpf_map_update_elem(&splice_ports, &here, &one, BPF_ANY);
	else
		bpf_map_delete_elem(&splice_ports, &here);
}

/* Runs for a request, which is no full socket: it has addresses and ports, and of which family they
 * are is not always said. What does not apply is a name that nobody asks for. */
static __always_inline void on_request(struct bpf_sock_ops *ops)
{
	struct listener here = {bpf_get_netns_cookie(ops), local_port_of(ops)};
	struct address client, server;
	struct tuple name;
	u32 one = 1;

	if (control.stop || !is_port_chosen(here.port))
		return;
	if (bpf_map_lookup_elem(&splice_ports, &here)) {
		count(COUNT_REFUSED);
		return;
	}
	client = mapped(FIELD(ops, remote_ip4));
	server = mapped(FIELD(ops, local_ip4));
	tuple_of(&name, &client, remote_port_of(ops), &server, here.port);
	bpf_map_update_elem(&asked, &name, &one, BPF_ANY);
	if (FIELD(ops, family) != AF_INET6)
		return;
	client = remote_of(ops);
	server = local_of(ops);
	tuple_of(&name, &client, remote_port_of(ops), &server, here.port);
	bpf_map_update_elem(&asked, &name, &one, BPF_ANY);
}

/* The only moment at which the program that connects is known. */
static __always_inline void on_connect(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;
	struct end *own;

	if (!sk)
		return;
	on_reuse(sk);
	if (!is_port_chosen(remote_port_of(ops)) || !is_program_refused())
		return;
	own = bpf_sk_storage_get(&splice_ends, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (own)
		own->mode = MODE_REFUSED;
}

static __always_inline bool take_place(void)
{
	if (__sync_add_and_fetch(&control.ends_now, 1) <= control.ends_max)
		return true;
	__sync_fetch_and_add(&control.ends_now, -1);
	count(COUNT_FULL);
	return false;
}

/* Both ends' programs belong to one user, or it was asked for: a receiver that stops in the middle of its call holds
 * up the sender of a redirected message, whom no signal ends then (lock_sock in bpf_tcp_ingress). */
static __noinline bool is_other_user(const struct end *own)
{
	struct sock *sock = (struct sock *)own->sock, *other = (struct sock *)own->peer.sock;

	return !control.across_users && BPF_CORE_READ(sock, sk_uid.val) != BPF_CORE_READ(other, sk_uid.val);
}

static __noinline bool begins_incompatible(const struct end *own)
{
	return has_incompatible_options((struct sock *)own->sock);
}

static __always_inline struct end *join(struct bpf_sock_ops *ops, struct bpf_sock *sk,
					const struct peer *peer)
{
	struct end *own = bpf_sk_storage_get(&splice_ends, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	u64 cookie = bpf_get_socket_cookie(ops);

	if (!own) {
		count(COUNT_MAP_ERROR);
		return NULL;
	}
	if (own->mode == MODE_REFUSED) {
		count(COUNT_REFUSED);
		return NULL;
	}
	own->cookie = cookie;
	own->sock = (u64)sk;
	if (own->incompatible || (control.blocking && begins_incompatible(own))) {
		count(own->incompatible == INCOMPATIBLE_CALL ? COUNT_CALLS : COUNT_OPTIONS);
		return NULL;
	}
	own->remote_ip4 = FIELD(ops, remote_ip4);
	own->remote_port = FIELD(ops, remote_port);
	own->local_port = FIELD(ops, local_port);
	own->is_server = peer != NULL;
	if (peer)
		own->peer = *peer;
	if (peer && is_other_user(own)) {
		count(COUNT_OTHER_USER);
		return NULL;
	}
	if (control.blocking && !take_place())
		return NULL;
	own->is_followed = control.in_flight;
	own->stage = STAGE_WATCHED;
	if (control.blocking) {
		if (bpf_sock_hash_update(ops, &splice_socks, &cookie, BPF_ANY)) {
			__sync_fetch_and_add(&control.ends_now, -1);
			own->stage = STAGE_OUT;
			count(COUNT_MAP_ERROR);
			return NULL;
		}
		own->stage = STAGE_JOINED;
		own->is_joined = 1;
		own->is_open = 1;
		count(COUNT_ENDS_JOINED);
	}
	if (control.verify)
		verify_join(ops, own, peer);
	bpf_sock_ops_cb_flags_set(ops, FIELD(ops, bpf_sock_ops_cb_flags) | BPF_SOCK_OPS_STATE_CB_FLAG);
	return own;
}

static __always_inline void on_client(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;
	struct begun begun = {};
	struct peer own_peer = {};
	struct end *own;

	if (!sk || control.stop || !is_port_chosen(remote_port_of(ops)))
		return;
	name_of(ops, true, &begun.name);
	if (bpf_map_delete_elem(&asked, &begun.name)) {
		count(COUNT_SERVER_OUTSIDE);
		return;
	}
	own = join(ops, sk, NULL);
	begun.client_seq = FIELD(ops, snd_nxt);
	begun.server_seq = FIELD(ops, rcv_nxt);
	/* Of one that does not join it was said why: its server finds no cookie. */
	if (own) {
		own_peer.cookie = own->cookie;
		own_peer.sock = own->sock;
		own_peer.end = (u64)own;
	}
	bpf_map_update_elem(&waiting, &begun, &own_peer, BPF_ANY);
}

static __always_inline void on_server(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;
	struct begun begun = {};
	struct peer *found, client, own_peer;
	struct end *own;

	if (!sk || !is_port_chosen(local_port_of(ops)))
		return;
	name_of(ops, false, &begun.name);
	begun.client_seq = FIELD(ops, rcv_nxt);
	begun.server_seq = FIELD(ops, snd_nxt);
	found = bpf_map_lookup_elem(&waiting, &begun);
	if (!found) {
		bpf_map_delete_elem(&asked, &begun.name);
		count(COUNT_CLIENT_OUTSIDE);
		return;
	}
	client = *found;
	bpf_map_delete_elem(&waiting, &begun);
	if (!client.cookie)
		return;
	own = join(ops, sk, &client);
	if (!own) {
		/* Alone the client would have a joined socket's limits and none of its speed. */
		bpf_map_delete_elem(&splice_socks, &client.cookie);
		bpf_map_delete_elem(&splice_watched, &client.cookie);
		return;
	}
	own_peer.cookie = own->cookie;
	own_peer.sock = own->sock;
	own_peer.end = (u64)own;
	if (bpf_map_update_elem(&splice_met, &client.cookie, &own_peer, BPF_ANY))
		count(COUNT_MAP_ERROR);
	if (control.blocking)
		count(COUNT_CONNECTIONS);
	if (control.verify)
		verify_meet(own);
}

/* Of a connection that was not joined, at its server's end. */
static __always_inline enum count why_not(struct end *own)
{
	u32 incompatible = incompatible_of_either(own);

	if (incompatible)
		return incompatible == INCOMPATIBLE_CALL ? COUNT_CALLS : COUNT_OPTIONS;
	return own->may_wait ? COUNT_BLOCKING : COUNT_UNDECIDED;
}

/* From an open connection without an error there is one way to TCP_CLOSE: its program disconnects it (tcp_disconnect,
 * net/ipv4/tcp.c), and throws away what is unread. */
static __always_inline bool is_disconnect(struct sock *sk, u32 before)
{
	return (before == TCP_ESTABLISHED || before == TCP_CLOSE_WAIT) && !BPF_CORE_READ(sk, sk_err);
}

/* What is unread can still be read, so its socket stays in the map, and user space has it leave once that is read. All
 * others are TCP's alone again: at a socket in the map a send of no bytes says nothing, and each one is told of a reset, by
 * TCP only the first (tcp_bpf_sendmsg). */
static __always_inline void on_state(struct bpf_sock_ops *ops)
{
	u32 before = FIELD(ops, args[0]), now = FIELD(ops, args[1]);
	struct bpf_sock *sk = ops->sk;
	bool is_ended;
	struct end *own;

	/* A FIN is sent behind this (tcp_close_state), or none any more. */
	if (!sk || (now != TCP_FIN_WAIT1 && now != TCP_LAST_ACK && now != TCP_CLOSE))
		return;
	own = bpf_sk_storage_get(&splice_ends, sk, NULL, 0);
	if (!own || own->stage == STAGE_NONE)
		return;
	on_closed(own);
	if (now != TCP_CLOSE) {
		if (on_shut(own)) {
			bpf_map_delete_elem(&splice_socks, &own->cookie);
			end_joining(own);
		}
		return;
	}
	if (own->stage == STAGE_WATCHED && own->is_server)
		count(why_not(own));
	is_ended = is_disconnect((struct sock *)own->sock, before);
	if (is_ended || !has_queued((struct sock *)own->sock))
		bpf_map_delete_elem(&splice_socks, &own->cookie);
	else
		/* An end that shows its reader TCP's bytes, too, leaves that first, which iter/tcp does for open ones alone. */
		own->lingers = own->is_joined && own->close < CLOSE_BEGUN && !is_gathered((struct sock *)own->sock);
	end_joining(own);
	/* Without a FIN: TCP has reset it, since bytes were unread there, too. */
	if (end_expecting(own) && (before == TCP_ESTABLISHED || before == TCP_CLOSE_WAIT))
		count(COUNT_RESET_UNREAD);
	if (!control.verify)
		return;
	if (is_ended)
		verify_disconnected(own->cookie);
	else
		verify_closed(own);
}
