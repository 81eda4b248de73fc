/* Where its device is watched the FIN of an end that was closed with bytes unread is made the reset that TCP would have
 * sent: the same sequence number, so that the other end believes it (RFC 5961 section 3). Once for each end. */
#pragma once
#include "resets.h"

#define ETH_HLEN 14
#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86dd
#define LOOPBACK_IFINDEX 1
#define TCX_NEXT -1
/* Of a TCP header (RFC 9293 section 3.1). */
#define SEQUENCE_OFFSET 4
#define FLAGS_OFFSET 13
#define CHECKSUM_OFFSET 16
#define FLAG_FIN 1
#define FLAG_RST 4

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

static __always_inline void swap(struct __sk_buff *skb, u32 at, u32 bytes)
{
	u8 first[16], second[16];

	if (bpf_skb_load_bytes(skb, at, first, bytes) || bpf_skb_load_bytes(skb, at + bytes, second, bytes))
		return;
	bpf_skb_store_bytes(skb, at, second, bytes, 0);
	bpf_skb_store_bytes(skb, at + bytes, first, bytes, 0);
}

/* As if the other end had sent it: it acknowledges what it was sent, and goes on where it was acknowledged. All of this
 * leaves the checksums as they are, sums of all words (RFC 1071). */
static __always_inline void turn(struct __sk_buff *skb, u32 at)
{
	swap(skb, 0, 6);
	if (skb->protocol == bpf_htons(ETH_P_IP))
		swap(skb, ETH_HLEN + 12, 4);
	else
		swap(skb, ETH_HLEN + 8, 16);
	swap(skb, at, 2);
	swap(skb, at + SEQUENCE_OFFSET, 4);
}

/* TCP is done with a connection that it resets, and its port is free. An end that has sent a FIN waits, and nobody answers:
 * so it is reset, too. A loopback device takes local addresses only of packets that it sends. */
static __always_inline void reset_own(struct __sk_buff *skb, u32 at)
{
	turn(skb, at);
	bpf_clone_redirect(skb, skb->ifindex, skb->ifindex == LOOPBACK_IFINDEX ? 0 : BPF_F_INGRESS);
	/* The call above has made it writable again, before it sent the copy. */
	turn(skb, at);
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
	reset_own(skb, at);
}

/* For all other packets one look at this number is all. */
SEC("tc")
int splice_fin(struct __sk_buff *skb)
{
	if (resets_due > 0)
		make_reset(skb);
	return TCX_NEXT;
}
