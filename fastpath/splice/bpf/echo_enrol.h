/* Which sockets are the server's, and which are its clients on this machine. */
#pragma once

/* A field of a context must be read at a constant offset of the context itself; the compiler likes to
 * merge addresses, and the verifier refuses that. */
#define FIELD(x) ({ __u32 v_ = (x); asm volatile("" : "+r"(v_)); v_; })

static __always_inline void v4_address(__u32 *to, __u32 address)
{
	to[0] = 0;
	to[1] = 0;
	to[2] = bpf_htonl(0xffff);
	to[3] = address;
}

static __always_inline bool is_v4(const __u32 *a)
{
	return !a[0] && !a[1] && a[2] == bpf_htonl(0xffff);
}

static __always_inline bool is_same(const __u32 *a, const __u32 *b)
{
	return a[0] == b[0] && a[1] == b[1] && a[2] == b[2] && a[3] == b[3];
}

static __always_inline bool is_loopback(const __u32 *a)
{
	if (is_v4(a))
		return (bpf_ntohl(a[3]) >> 24) == 127;
	return !a[0] && !a[1] && !a[2] && a[3] == bpf_htonl(1);
}

static __always_inline void addresses_of(struct bpf_sock_ops *ops, __u32 *local, __u32 *remote)
{
	if (FIELD(ops->family) == AF_INET) {
		v4_address(local, FIELD(ops->local_ip4));
		v4_address(remote, FIELD(ops->remote_ip4));
		return;
	}
	local[0] = FIELD(ops->local_ip6[0]);
	local[1] = FIELD(ops->local_ip6[1]);
	local[2] = FIELD(ops->local_ip6[2]);
	local[3] = FIELD(ops->local_ip6[3]);
	remote[0] = FIELD(ops->remote_ip6[0]);
	remote[1] = FIELD(ops->remote_ip6[1]);
	remote[2] = FIELD(ops->remote_ip6[2]);
	remote[3] = FIELD(ops->remote_ip6[3]);
	/* An IPv6 socket with an IPv4 connection may have its addresses in the other fields only. */
	if (!remote[0] && !remote[1] && !remote[2] && !remote[3]) {
		v4_address(local, FIELD(ops->local_ip4));
		v4_address(remote, FIELD(ops->remote_ip4));
	}
}

static __always_inline bool is_listened_on(const __u32 *address)
{
	__u32 listened[4] = {config.address[0], config.address[1], config.address[2], config.address[3]};
	if (!(config.families & (is_v4(address) ? 1 : 2)))
		return 0;
	return config.any_address || is_same(address, listened);
}

static __always_inline void call_back_at_the_end(struct bpf_sock_ops *ops)
{
	bpf_sock_ops_cb_flags_set(ops, FIELD(ops->bpf_sock_ops_cb_flags) | BPF_SOCK_OPS_STATE_CB_FLAG);
}

/* Nobody shares the listener's port, so whatever is accepted there is the server's. */
static __always_inline void server_established(struct bpf_sock_ops *ops)
{
	struct echo_connection c = {};
	__u64 cookie;
	if (FIELD(ops->local_port) != config.port)
		return;
	if (bpf_get_netns_cookie(ops) != config.netns_cookie)
		return;
	addresses_of(ops, c.tuple.server, c.tuple.client);
	if (!is_listened_on(c.tuple.server))
		return;
	c.tuple.server_port = config.port;
	c.tuple.client_port = bpf_ntohl(FIELD(ops->remote_port));
	c.first_out = FIELD(ops->snd_nxt);
	c.first_in = FIELD(ops->rcv_nxt);
	c.next_in = c.first_in;
	cookie = bpf_get_socket_cookie(ops);
	if (bpf_map_update_elem(&connections, &cookie, &c, BPF_ANY)) {
		count(NO_ROOM, 1);
		return;
	}
	if (bpf_sock_hash_update(ops, &servers, &cookie, BPF_ANY)) {
		bpf_map_delete_elem(&connections, &cookie);
		count(NOT_ENROLLED, 1);
		return;
	}
	count(ENROLLED, 1);
	call_back_at_the_end(ops);
}

/* The server's side is not established yet: it may be somebody else's with the same address. What
 * decides is whether the server's connection has the same sequence numbers. */
static __always_inline void client_established(struct bpf_sock_ops *ops)
{
	struct echo_tuple tuple = {};
	struct echo_client client = {};
	if (bpf_ntohl(FIELD(ops->remote_port)) != config.port)
		return;
	addresses_of(ops, tuple.client, tuple.server);
	if (!is_listened_on(tuple.server))
		return;
	if (is_loopback(tuple.server)) {
		if (bpf_get_netns_cookie(ops) != config.netns_cookie)
			return;
	} else if (!bpf_map_lookup_elem(&addresses, tuple.server)) {
		return;
	}
	tuple.server_port = config.port;
	tuple.client_port = FIELD(ops->local_port);
	client.first_out = FIELD(ops->snd_nxt);
	client.first_in = FIELD(ops->rcv_nxt);
	client.cookie = bpf_get_socket_cookie(ops);
	if (bpf_sock_hash_update(ops, &clients, &client.cookie, BPF_ANY)) {
		count(CLIENTS_NOT_ENROLLED, 1);
		return;
	}
	bpf_map_update_elem(&by_tuple, &tuple, &client, BPF_ANY);
	count(CLIENTS, 1);
	call_back_at_the_end(ops);
}

/* The kernel takes sockets out of its maps by itself, records not. */
static __always_inline void closed(struct bpf_sock_ops *ops)
{
	__u64 cookie = bpf_get_socket_cookie(ops);
	struct echo_tuple tuple = {};
	if (FIELD(ops->local_port) == config.port) {
		bpf_map_delete_elem(&connections, &cookie);
		return;
	}
	if (bpf_ntohl(FIELD(ops->remote_port)) != config.port)
		return;
	addresses_of(ops, tuple.client, tuple.server);
	tuple.server_port = config.port;
	tuple.client_port = FIELD(ops->local_port);
	struct echo_client *client = bpf_map_lookup_elem(&by_tuple, &tuple);
	if (client && client->cookie == cookie)
		bpf_map_delete_elem(&by_tuple, &tuple);
}
