/* TCP's readers find the urgent byte (MSG_OOB) beside the stream, not in it, unless they ask for it (SO_OOBINLINE). A verdict
 * is given it in line (tcp_read_skb, net/ipv4/tcp.c). */
#pragma once
#include "overlap.h"

enum urgent { NOTHING_URGENT, LEFT_OUT, NOTHING_ELSE, STAYS_IN_LINE };

#define PART 64
/* In parts, and the rest byte by byte: the verifier of 6.1 does not know a length that is looked at before. */
#define MOVES_MAX (65536 / PART + PART)

struct moving {
	struct __sk_buff *skb;
	__u32 left;
	__u32 has_failed;
};

/* The last bytes of what is left, one place on. */
static long move_on(__u32 n, struct moving *moving)
{
	__u8 part[PART];

	if (!moving->left)
		return 1;
	if (moving->left >= PART) {
		moving->left -= PART;
		moving->has_failed = bpf_skb_load_bytes(moving->skb, moving->left, part, PART) ||
				     bpf_skb_store_bytes(moving->skb, moving->left + 1, part, PART, 0);
	} else {
		moving->left--;
		moving->has_failed = bpf_skb_load_bytes(moving->skb, moving->left, part, 1) ||
				     bpf_skb_store_bytes(moving->skb, moving->left + 1, part, 1, 0);
	}
	return moving->has_failed;
}

/* The one that TCP points at now. It forgets where it was only when a reader passes it: of a stream of 4 GiB the place comes
 * again. `first`: sequence number of the packet's first byte. */
static __always_inline enum urgent leave_out_urgent(struct __sk_buff *skb, const struct tcp_sock *tcp, __u32 first,
						    struct proxy_way *w)
{
	__u32 seq = tcp->urg_seq, len = skb->len;
	__u32 at = seq - first;
	struct moving moving = {.skb = skb, .left = at};

	if (!tcp->urg_data || at >= len || (w->had_urgent && w->urgent_seq == seq))
		return NOTHING_URGENT;
	w->had_urgent = 1;
	w->urgent_seq = seq;
	if (len == 1)
		return NOTHING_ELSE;
	bpf_loop(MOVES_MAX, move_on, &moving, 0);
	return !moving.left && !moving.has_failed && take_off(skb, 1) ? LEFT_OUT : STAYS_IN_LINE;
}
