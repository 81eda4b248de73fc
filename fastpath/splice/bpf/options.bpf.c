/* Options of sockets: those that mean the same for redirected bytes are listed; whoever sets another one stays on
 * TCP. */
#pragma once
#include "incompatible.h"

enum {
	SOL_IP = 0,
	SOL_SOCKET = 1,
	SOL_TCP = 6,
	SOL_IPV6 = 41,
};

/* include/uapi/asm-generic/socket.h: by number, up to 63. */
#define BIT(n) (1ULL << (n))
static const u64 harmless_socket =
	BIT(1) /* DEBUG */ | BIT(2) /* REUSEADDR */ | BIT(5) /* DONTROUTE */ | BIT(6) /* BROADCAST */ |
	BIT(7) /* SNDBUF */ | BIT(8) /* RCVBUF */ | BIT(9) /* KEEPALIVE */ | BIT(10) /* OOBINLINE */ | BIT(11) /* NO_CHECK */ |
	BIT(12) /* PRIORITY */ | BIT(13) /* LINGER */ | BIT(15) /* REUSEPORT */ | BIT(18) /* RCVLOWAT: unlike.h */ |
	BIT(19) /* SNDLOWAT */ | BIT(20) /* RCVTIMEO_OLD */ | BIT(21) /* SNDTIMEO_OLD */ | BIT(25) /* BINDTODEVICE */ |
	BIT(27) /* DETACH_FILTER */ | BIT(32) /* SNDBUFFORCE */ | BIT(33) /* RCVBUFFORCE */ | BIT(36) /* MARK */ |
	BIT(46) /* BUSY_POLL */ | BIT(49) /* INCOMING_CPU */ |
	BIT(51) /* ATTACH_REUSEPORT_CBPF */ | BIT(52) /* ATTACH_REUSEPORT_EBPF */;
/* include/uapi/linux/tcp.h */
static const u64 harmless_tcp =
	BIT(1) /* NODELAY */ | BIT(2) /* MAXSEG */ | BIT(4) /* KEEPIDLE */ | BIT(5) /* KEEPINTVL */ |
	BIT(6) /* KEEPCNT */ | BIT(7) /* SYNCNT */ | BIT(8) /* LINGER2 */ | BIT(9) /* DEFER_ACCEPT */ |
	BIT(10) /* WINDOW_CLAMP */ | BIT(12) /* QUICKACK */ | BIT(13) /* CONGESTION */ | BIT(18) /* USER_TIMEOUT */ |
	BIT(23) /* FASTOPEN */ | BIT(25) /* NOTSENT_LOWAT */ | BIT(30) /* FASTOPEN_CONNECT */ |
	BIT(36) /* INQ: unlike.h */;

static __always_inline bool is_harmless(s32 level, u32 option)
{
	if (level == SOL_IP || level == SOL_IPV6)
		return true;
	if (option > 63)
		/* SO_RCVTIMEO_NEW, SO_SNDTIMEO_NEW, SO_PREFER_BUSY_POLL and its budget, SO_TXREHASH */
		return level == SOL_SOCKET && (option == 66 || option == 67 || option == 69 || option == 70 || option == 74);
	if (level == SOL_SOCKET)
		return harmless_socket & BIT(option);
	return level == SOL_TCP && harmless_tcp & BIT(option);
}

/* Whoever sends to it, or from it, has credit by the old size. One that looks again at the very moment sees it still. */
static __always_inline void on_size(struct bpf_sock *sk, s32 level, u32 option)
{
	const u64 sizes = BIT(7) /* SNDBUF */ | BIT(8) /* RCVBUF */ | BIT(32) /* SNDBUFFORCE */ | BIT(33) /* RCVBUFFORCE */;
	struct end *own;

	if (level != SOL_SOCKET || option > 63 || !(sizes & BIT(option)))
		return;
	own = bpf_sk_storage_get(&splice_ends, sk, NULL, 0);
	if (own && own->is_joined)
		__sync_fetch_and_add(&changes, 1);
}

SEC("cgroup/setsockopt")
int splice_on_option(struct bpf_sockopt *ctx)
{
	s32 level = ctx->level;
	u32 option = ctx->optname;
	struct bpf_sock *sk = ctx->sk;
	struct end *own;

	/* The program's own bytes, however many, and not a copy. */
	ctx->optlen = 0;
	if (!sk || sk->protocol != IPPROTO_TCP)
		return 1;
	on_size(sk, level, option);
	if (is_harmless(level, option))
		return 1;
	own = bpf_sk_storage_get(&splice_ends, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!own || own->incompatible)
		return 1;
	tell(level, option);
	make_incompatible(own, INCOMPATIBLE_OPTION);
	return 1;
}
