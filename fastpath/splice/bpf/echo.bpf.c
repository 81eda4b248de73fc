/* TCP that is sent back before user space sees it. */
#include <kernel.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include "echo.h"
#include "echo_state.h"
#include "echo_enrol.h"
#include "echo_peer.h"
#include "overlap.h"

char LICENSE[] SEC("license") = "GPL";

SEC("sockops")
int echo_sockops(struct bpf_sock_ops *ops)
{
	switch (ops->op) {
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		server_established(ops);
		break;
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
		if (config.enrol_clients)
			client_established(ops);
		break;
	case BPF_SOCK_OPS_STATE_CB:
		if (ops->args[1] == TCP_CLOSE)
			closed(ops);
		break;
	}
	return 1;
}

static __always_inline void say(struct echo_connection *c, __u64 cookie, __u32 kind)
{
	struct echo_event event = {.cookie = cookie, .kind = kind};
	if (bpf_ringbuf_output(&events, &event, sizeof event, 0)) {
		c->unsaid = kind;
		count(EVENTS_LATE, 1);
	} else {
		c->unsaid = 0;
	}
}

/* Decided once: bytes of one connection must not take two ways at a time. */
static __always_inline void decide(struct echo_connection *c)
{
	struct echo_client *client = bpf_map_lookup_elem(&by_tuple, &c->tuple);
	/* Two namespaces may use the same addresses and ports; not the same 64 bits of sequence numbers. */
	if (client && client->first_out == c->first_in && client->first_in == c->first_out) {
		c->client = client->cookie;
		c->mode = INGRESS;
		count(INGRESS_CONNECTIONS, 1);
		bpf_map_delete_elem(&by_tuple, &c->tuple);
		return;
	}
	c->mode = EGRESS;
	count(EGRESS_CONNECTIONS, 1);
}

static __always_inline int to_user(struct echo_connection *c, __u64 cookie, __u32 len, __u32 why)
{
	c->mode = USER;
	c->passed += len;
	count(why, 1);
	count(PASSED_BYTES, len);
	say(c, cookie, NOW_USER);
	return SK_PASS;
}

/* Until user space resets it: what comes meanwhile is acknowledged, and nowhere. */
static __always_inline int drop(struct __sk_buff *skb)
{
	count(DROPPED_BYTES, skb->len);
	return SK_DROP;
}

static __always_inline int over(struct __sk_buff *skb, struct echo_connection *c, __u64 cookie)
{
	c->mode = OVER;
	count(OVER_LIMIT, 1);
	say(c, cookie, NOW_OVER);
	return drop(skb);
}

static __always_inline int by_egress(struct __sk_buff *skb, struct echo_connection *c, __u64 cookie)
{
	__u32 len = skb->len;
	struct bpf_sock *sk = skb->sk;
	struct tcp_sock *tcp = sk ? bpf_skc_to_tcp_sock(sk) : NULL;
	/* The kernel neither limits nor charges this backlog, and no verdict leaves bytes in TCP's queue. */
	if (tcp && c->first_out + (__u32)c->redirected - tcp->snd_una > config.egress_limit)
		return over(skb, c, cookie);
	if (bpf_sk_redirect_hash(skb, &servers, &cookie, 0) != SK_PASS)
		return to_user(c, cookie, len, REDIRECT_FAILED);
	c->redirected += len;
	count(EGRESS_BYTES, len);
	return SK_PASS;
}

static __always_inline int by_ingress(struct __sk_buff *skb, struct echo_connection *c, __u64 cookie)
{
	__u32 len = skb->len;
	if (waiting_packets(&c->client) > config.ingress_limit)
		return to_user(c, cookie, len, CLIENT_IS_SLOW);
	if (bpf_sk_redirect_hash(skb, &clients, &c->client, BPF_F_INGRESS) != SK_PASS)
		return to_user(c, cookie, len, REDIRECT_FAILED);
	c->redirected += len;
	count(INGRESS_BYTES, len);
	return SK_PASS;
}

SEC("sk_skb/stream_verdict")
int echo_verdict(struct __sk_buff *skb)
{
	__u64 cookie = bpf_get_socket_cookie(skb);
	struct echo_connection *c;
	__u32 first;
	count(VERDICTS, 1);
	/* FIN. */
	if (!skb->len)
		return SK_PASS;
	c = bpf_map_lookup_elem(&connections, &cookie);
	if (!c) {
		count(NO_RECORD, 1);
		return SK_PASS;
	}
	if (c->unsaid)
		say(c, cookie, c->unsaid);
	if (c->mode == OVER)
		return drop(skb);
	if (c->mode == UNDECIDED)
		decide(c);
	switch (cut_known(skb, &c->next_in, &first)) {
	case NOTHING_CUT:
		break;
	case FIRST_PART_CUT:
		count(OVERLAPS, 1);
		break;
	case ALL_KNOWN:
		count(OVERLAPS, 1);
		return SK_DROP;
	case NOT_CUT:
		/* Bytes would come twice. */
		count(OVERLAPS, 1);
		return over(skb, c, cookie);
	}
	switch (c->mode) {
	case EGRESS:
		return by_egress(skb, c, cookie);
	case INGRESS:
		return by_ingress(skb, c, cookie);
	}
	c->passed += skb->len;
	count(PASSED_BYTES, skb->len);
	return SK_PASS;
}

/* Run by user space, for its answer: whether all that was turned round is with TCP or with the client,
 * so that what follows it, bytes or FIN, cannot overtake. No packet comes by. */
SEC("tc")
int echo_drained(struct __sk_buff *skb)
{
	struct echo_question *asked = (void *)(long)skb->data;
	void *end = (void *)(long)skb->data_end;
	struct echo_connection *c;
	if ((void *)(asked + 1) > end)
		return UNKNOWN;
	__u64 cookie = asked->cookie, user_sent = asked->user_sent;
	c = bpf_map_lookup_elem(&connections, &cookie);
	if (!c)
		return UNKNOWN;
	if (c->client)
		return is_delivered(&c->client) ? DRAINED : PENDING;
	return is_appended(&cookie, c->first_out + (__u32)(c->redirected + user_sent)) ? DRAINED : PENDING;
}
