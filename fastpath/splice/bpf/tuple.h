/* A connection's name, the same at both ends: addresses as IPv6 (IPv4 mapped, RFC 4291 section 2.5.5.2),
 * ports in host order. */
#pragma once
#include <kernel.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

struct tuple {
	u32 client[4];
	u32 server[4];
	u16 client_port;
	u16 server_port;
};

/* clang would merge reads of neighbouring fields into one through a computed address, which the
 * verifier refuses. */
#define FIELD(context, name)                                                                           \
	({                                                                                             \
		u32 value_ = (context)->name;                                                          \
		asm volatile("" : "+r"(value_));                                                       \
		value_;                                                                                \
	})

struct address {
	u32 word[4];
};

static __always_inline struct address mapped(u32 ip4)
{
	return (struct address){{0, 0, bpf_htonl(0xffff), ip4}};
}

static __always_inline bool is_unset(const struct address *a)
{
	return (a->word[0] | a->word[1] | a->word[2] | a->word[3]) == 0;
}

static __always_inline struct address local_of(struct bpf_sock_ops *ops)
{
	struct address a = {
		{FIELD(ops, local_ip6[0]), FIELD(ops, local_ip6[1]), FIELD(ops, local_ip6[2]),
		 FIELD(ops, local_ip6[3])}};
	return a;
}

static __always_inline struct address remote_of(struct bpf_sock_ops *ops)
{
	struct address a = {
		{FIELD(ops, remote_ip6[0]), FIELD(ops, remote_ip6[1]), FIELD(ops, remote_ip6[2]),
		 FIELD(ops, remote_ip6[3])}};
	return a;
}

static __always_inline u16 remote_port_of(struct bpf_sock_ops *ops)
{
	return bpf_ntohl(FIELD(ops, remote_port));
}

static __always_inline u16 local_port_of(struct bpf_sock_ops *ops)
{
	return FIELD(ops, local_port);
}

static __always_inline void tuple_of(struct tuple *tuple, const struct address *client,
				     u16 client_port, const struct address *server, u16 server_port)
{
	__builtin_memcpy(tuple->client, client->word, sizeof(tuple->client));
	__builtin_memcpy(tuple->server, server->word, sizeof(tuple->server));
	tuple->client_port = client_port;
	tuple->server_port = server_port;
}

/* Of a socket that exists: its family says which addresses count. */
static __always_inline void name_of(struct bpf_sock_ops *ops, bool is_client, struct tuple *tuple)
{
	struct address local, remote;
	bool is_ip6 = FIELD(ops, family) == AF_INET6;

	if (is_ip6) {
		local = local_of(ops);
		remote = remote_of(ops);
	}
	if (!is_ip6 || is_unset(&remote)) {
		local = mapped(FIELD(ops, local_ip4));
		remote = mapped(FIELD(ops, remote_ip4));
	}
	if (is_client)
		tuple_of(tuple, &local, local_port_of(ops), &remote, remote_port_of(ops));
	else
		tuple_of(tuple, &remote, remote_port_of(ops), &local, local_port_of(ops));
}
