/* What arrives at one socket of a proxied connection leaves by the other before user space sees it. */
#include <kernel.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "psock.h"
#include "proxy.h"
#include "proxy_state.h"
#include "urgent.h"

char LICENSE[] SEC("license") = "GPL";

/* Each connection has a few notices in its life unless it changes sides often, and the ring has room for
 * 170,000; one that is lost is counted, and the connection reset: without it bytes would wait for ever. */
static __always_inline bool say(__u64 cookie, __u32 kind)
{
	struct proxy_event event = {.cookie = cookie, .kind = kind};
	if (!bpf_ringbuf_output(&proxy_events, &event, sizeof event, 0))
		return 1;
	count(EVENTS_LOST, 1);
	return 0;
}

/* How far TCP has bytes to send at the other socket. */
static __always_inline bool written(__u64 *peer, __u32 *write_seq)
{
	struct bpf_sock *sk = bpf_map_lookup_elem(&proxy_targets, peer);
	struct tcp_sock *tcp;
	if (!sk)
		return 0;
	tcp = bpf_skc_to_tcp_sock(sk);
	if (tcp)
		*write_seq = tcp->write_seq;
	bpf_sk_release(sk);
	return tcp != NULL;
}

static __always_inline int over(struct proxy_way *w, __u64 cookie)
{
	w->mode = OVER;
	count(OVER_LIMIT, 1);
	say(cookie, NOW_OVER);
	return SK_DROP;
}

static __always_inline int pass(struct proxy_way *w, __u32 len)
{
	w->passed += len;
	count(PASSED_BYTES, len);
	return SK_PASS;
}

/* What is passed at a socket waits uncharged behind what the kernel has to send there: so both directions
 * go. Each time one has to, it stays twice as long. */
static __always_inline int to_user(struct proxy_way *w, __u64 cookie, __u32 len, __u32 why)
{
	struct proxy_way *other = bpf_map_lookup_elem(&proxy_ways, &w->peer);
	__u32 times = w->takeovers < 10 ? w->takeovers : 10;
	if (other && other->mode != BY_USER)
		other->is_forced = 1;
	w->is_forced = 0;
	w->takeovers++;
	w->stays_until = w->passed + (1 << 20 << times);
	w->mode = BY_USER;
	count(why, 1);
	if (!say(cookie, NOW_USER))
		return over(w, cookie);
	return pass(w, len);
}

static __always_inline int by_kernel(struct __sk_buff *skb, struct proxy_way *w, __u64 cookie)
{
	__u32 len = skb->len;
	if (w->is_forced)
		return to_user(w, cookie, len, WITH_THE_OTHER);
	if (w->redirected + len > w->allowed) {
		__u32 write_seq, waiting;
		if (!written(&w->peer, &write_seq))
			return to_user(w, cookie, len, REDIRECT_FAILED);
		/* The worker hands over by packets, and nothing but it, or user space before, sends here. */
		waiting = w->base + (__u32)(w->redirected + w->passed) - write_seq;
		if (waiting + len > config.soft_limit)
			return to_user(w, cookie, len, READER_IS_SLOW);
		w->allowed = w->redirected + (config.soft_limit - waiting) / 2;
	}
	if (bpf_sk_redirect_hash(skb, &proxy_targets, &w->peer, 0) != SK_PASS)
		return to_user(w, cookie, len, REDIRECT_FAILED);
	w->redirected += len;
	count(w->is_down ? BYTES_DOWN : BYTES_UP, len);
	return SK_PASS;
}

/* Bytes that are passed are charged to their own socket, and its window closes, unless the kernel's worker
 * still has others to send out of that socket: they wait behind those then, and nothing is charged. */
static __always_inline bool is_charged(struct __sk_buff *skb, __u32 *receive_buffer)
{
	struct bpf_sock *own = skb->sk;
	struct tcp_sock *tcp = own ? bpf_skc_to_tcp_sock(own) : NULL;
	struct sk_psock *psock = tcp ? psock_of(tcp) : NULL;
	struct sock *sk = (void *)tcp;
	if (!psock || !BPF_CORE_READ(psock, ingress_skb.qlen))
		return 1;
	*receive_buffer = BPF_CORE_READ(sk, sk_rcvbuf);
	return 0;
}

static __always_inline int by_user(struct __sk_buff *skb, struct proxy_way *w, __u64 cookie)
{
	struct proxy_progress *done = bpf_map_lookup_elem(&proxy_progress, &cookie);
	__u32 len = skb->len, receive_buffer = 0;
	/* Everything that was left to user space is with TCP: nothing can be overtaken. */
	if (done && done->sent == w->passed && w->passed >= w->stays_until) {
		w->mode = BY_KERNEL;
		w->is_forced = 0;
		w->allowed = w->redirected;
		count(BACK_TO_KERNEL, 1);
		say(cookie, NOW_KERNEL);
		return by_kernel(skb, w, cookie);
	}
	if (is_charged(skb, &receive_buffer)) {
		w->is_held_back = 0;
		return pass(w, len);
	}
	__u64 unread = w->passed - (done ? done->received : 0);
	/* Those that came before may be charged, and as many may have been promised to the sender. */
	if (unread > (__u64)config.hard_limit + 2 * (__u64)receive_buffer)
		return over(w, cookie);
	if (unread > config.hard_limit / 8 && !w->is_held_back) {
		w->is_held_back = 1;
		count(SENDER_HELD_BACK, 1);
		say(cookie, HOLD_BACK);
	}
	return pass(w, len);
}

SEC("sk_skb/stream_verdict")
int proxy_verdict(struct __sk_buff *skb)
{
	__u64 cookie = bpf_get_socket_cookie(skb);
	struct bpf_sock *own;
	struct tcp_sock *tcp;
	struct proxy_way *w;
	__u32 first;
	count(VERDICTS, 1);
	/* FIN, which TCP has dealt with already. To be passed it would wait behind what the worker has to send
	 * here, and the worker takes a packet of no length for an error that ends the connection. */
	if (!skb->len)
		return SK_DROP;
	w = bpf_map_lookup_elem(&proxy_ways, &cookie);
	if (!w) {
		count(NO_RECORD, 1);
		return SK_PASS;
	}
	own = skb->sk;
	tcp = own ? bpf_skc_to_tcp_sock(own) : NULL;
	if (!tcp)
		return over(w, cookie);
	if (!w->has_next) {
		/* User space has read nothing before. */
		w->next_seq = tcp->copied_seq;
		w->has_next = 1;
	}
	switch (cut_known(skb, &w->next_seq, &first)) {
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
		return over(w, cookie);
	}
	switch (leave_out_urgent(skb, tcp, first, w)) {
	case NOTHING_URGENT:
		break;
	case LEFT_OUT:
		count(URGENT_LEFT_OUT, 1);
		break;
	case NOTHING_ELSE:
		count(URGENT_LEFT_OUT, 1);
		return SK_DROP;
	case STAYS_IN_LINE:
		count(URGENT_IN_LINE, 1);
		break;
	}
	switch (w->mode) {
	case FRESH:
		/* Nothing of this direction was sent yet by anyone. */
		if (!written(&w->peer, &w->base))
			return to_user(w, cookie, skb->len, REDIRECT_FAILED);
		w->mode = BY_KERNEL;
		/* fall through */
	case BY_KERNEL:
		return by_kernel(skb, w, cookie);
	case BY_USER:
		return by_user(skb, w, cookie);
	}
	return SK_DROP;
}

/* A filter of the socket itself (SO_ATTACH_BPF), asked before TCP is. While more than the limit lies there that
 * nobody is charged for, segments with bytes are lost to it: their sender, which was promised a window
 * before it was closed, sends them again later. ACKs without bytes come through. */
SEC("socket")
int proxy_brake(struct __sk_buff *skb)
{
	__u64 cookie = bpf_get_socket_cookie(skb);
	struct proxy_way *w = bpf_map_lookup_elem(&proxy_ways, &cookie);
	struct proxy_progress *done;
	__u8 offset;
	if (!w || !w->is_held_back)
		return WHOLE;
	done = bpf_map_lookup_elem(&proxy_progress, &cookie);
	if (w->passed - (done ? done->received : 0) <= config.hard_limit)
		return WHOLE;
	/* Data offset, in words (RFC 9293, section 3.1). */
	if (bpf_skb_load_bytes(skb, 12, &offset, sizeof offset) || skb->len <= (__u32)(offset >> 4) * 4)
		return WHOLE;
	count(SEGMENTS_REFUSED, 1);
	return 0;
}

/* Run by user space, for its answer: whether all that was redirected is with TCP, so that what follows it,
 * bytes or FIN, cannot overtake. No packet comes by. */
SEC("tc")
int proxy_drained(struct __sk_buff *skb)
{
	struct proxy_question *asked = (void *)(long)skb->data;
	void *end = (void *)(long)skb->data_end;
	struct proxy_way *w;
	__u32 write_seq;
	if ((void *)(asked + 1) > end)
		return PENDING;
	__u64 cookie = asked->cookie, user_sent = asked->user_sent;
	w = bpf_map_lookup_elem(&proxy_ways, &cookie);
	if (!w || !w->redirected)
		return DRAINED;
	/* The other socket is closed: there is nobody to wait for. */
	if (!written(&w->peer, &write_seq))
		return DRAINED;
	return w->base + (__u32)(w->redirected + user_sent) == write_seq ? DRAINED : PENDING;
}
