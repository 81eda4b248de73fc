/* A close with bytes unread is a reset (RFC 2525 section 2.17). The kernel looks for them in TCP's queue alone
 * (__tcp_close, net/ipv4/tcp.c), finds none there, and sends a FIN. Where its device is watched the FIN is made the reset
 * that TCP would have sent: the same sequence number, so that the other end believes it (RFC 5961 section 3). Once for
 * each end: what the kernel sends again meets a connection that is gone, whose reset ends this one, too. */
#pragma once
#include "state.h"
#include <bpf/bpf_core_read.h>

#define ETH_HLEN 14
#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86dd
#define TCX_NEXT -1
/* Of a TCP header (RFC 9293 section 3.1). */
#define FLAGS_OFFSET 13
#define CHECKSUM_OFFSET 16
#define FLAG_FIN 1
#define FLAG_RST 4

/* Ends that were closed with bytes unread, and whose FIN was not seen yet: for all other packets one look at this is all. */
s64 resets_due SEC(".data.resets");

static __always_inline void expect_fin(struct end *own)
{
	if (control.resets && !__sync_lock_test_and_set(&own->resets, 1))
		__sync_fetch_and_add(&resets_due, 1);
}

/* True where it was expected. */
static __always_inline bool end_expecting(struct end *own)
{
	if (!__sync_lock_test_and_set(&own->resets, 0))
		return false;
	__sync_fetch_and_add(&resets_due, -1);
	return true;
}

/* Where TCP's header begins in a packet of that socket's family; 0 where it does not follow IP's own. */
static __always_inline u32 tcp_offset(struct __sk_buff *skb)
{
	u8 first, protocol;

	if (bpf_skb_load_bytes(skb, ETH_HLEN, &first, 1))
		return 0;
	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		if (bpf_skb_load_bytes(skb, ETH_HLEN + 9, &protocol, 1) || first >> 4 != 4)
			return 0;
		return protocol == IPPROTO_TCP ? ETH_HLEN + (first & 15) * 4 : 0;
	}
	if (skb->protocol != bpf_htons(ETH_P_IPV6) || first >> 4 != 6 ||
	    bpf_skb_load_bytes(skb, ETH_HLEN + 6, &protocol, 1))
		return 0;
	return protocol == IPPROTO_TCP ? ETH_HLEN + 40 : 0;
}

static __always_inline void make_reset(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk ? bpf_sk_fullsock(skb->sk) : NULL;
	struct end *own = sk ? bpf_sk_storage_get(&splice_ends, sk, NULL, 0) : NULL;
	/* With the byte before it: a checksum is of words of two bytes. */
	u8 before[2], after[2];
	u32 at;

	if (!own || !own->resets)
		return;
	at = tcp_offset(skb);
	if (!at || bpf_skb_load_bytes(skb, at + FLAGS_OFFSET - 1, before, 2) || !(before[1] & FLAG_FIN))
		return;
	after[0] = before[0];
	after[1] = (before[1] & ~FLAG_FIN) | FLAG_RST;
	if (!end_expecting(own))
		return;
	if (bpf_l4_csum_replace(skb, at + CHECKSUM_OFFSET, *(u16 *)before, *(u16 *)after, 2) ||
	    bpf_skb_store_bytes(skb, at + FLAGS_OFFSET - 1, after, 2, 0))
		return;
	count(COUNT_RESET_UNREAD);
}

SEC("tc")
int splice_fin(struct __sk_buff *skb)
{
	if (resets_due > 0)
		make_reset(skb);
	return TCX_NEXT;
}
