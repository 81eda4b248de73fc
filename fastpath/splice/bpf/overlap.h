/* A sender that retransmits may put bytes that have arrived and bytes that have not into one packet. TCP's own
 * readers begin in the middle of such a packet; a verdict is given all of it (tcp_read_skb, net/ipv4/tcp.c), and
 * would hand the first part on a second time. */
#pragma once

/* What an sk_skb program may take off at once (sk_skb_adjust_room, net/core/filter.c). */
#define TAKEN_OFF_MAX 0xfff
#define TAKEN_OFF_TIMES 20

enum cut { NOTHING_CUT, FIRST_PART_CUT, ALL_KNOWN, NOT_CUT };

static __always_inline bool take_off(struct __sk_buff *skb, __u32 bytes)
{
	for (int n = 0; n < TAKEN_OFF_TIMES; n++) {
		__u32 part = bytes < TAKEN_OFF_MAX ? bytes : TAKEN_OFF_MAX;
		if (!part)
			return 1;
		if (bpf_skb_adjust_room(skb, -(__s32)part, 0, 0))
			return 0;
		bytes -= part;
	}
	return 0;
}

/* `next`: the sequence number of the first byte that has not been seen. `first`: then, of the packet's first. */
static __always_inline enum cut cut_known(struct __sk_buff *skb, __u32 *next, __u32 *first)
{
	struct tcp_skb_cb cb = {};
	struct tcp_skb_cb *at = (void *)skb + bpf_core_field_offset(struct sk_buff, cb);
	__u32 known;
	*first = *next;
	if (bpf_probe_read_kernel(&cb.seq, sizeof cb.seq, (void *)at + bpf_core_field_offset(struct tcp_skb_cb, seq)) ||
	    bpf_probe_read_kernel(&cb.end_seq, sizeof cb.end_seq,
				  (void *)at + bpf_core_field_offset(struct tcp_skb_cb, end_seq)))
		return NOT_CUT;
	known = *next - cb.seq;
	*first = (__s32)known > 0 ? *next : cb.seq;
	/* Never back, or what follows a packet that is known as a whole would be judged by its end. */
	if ((__s32)(cb.end_seq - *next) > 0)
		*next = cb.end_seq;
	if ((__s32)known <= 0)
		return NOTHING_CUT;
	if (known >= skb->len)
		return ALL_KNOWN;
	return take_off(skb, known) ? FIRST_PART_CUT : NOT_CUT;
}
