/* A reader that waits for edges (EPOLLET) and was given less than it asked for takes its socket for empty (epoll(7)). So it
 * is where redirected bytes lie before TCP's: a receive returns the former alone (tcp_bpf_recvmsg, net/ipv4/tcp_bpf.c), and
 * the edge of the latter was given when they came. It is given again here. */
#include "end.h"
#include "gathered.h"
#include "queue.h"
#include <bpf/bpf_helpers.h>

char terms[] SEC("license") = "GPL";

#define SOL_SOCKET 1
#define SO_RCVLOWAT 18

/* The accelerator's. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct end);
} splice_ends SEC(".maps");

/* Setting this option to what it is tells who waits, where there is something to read (tcp_set_rcvlowat, net/ipv4/tcp.c). */
static __always_inline void tell(struct tcp_sock *tcp)
{
	int least = BPF_CORE_READ((struct sock *)tcp, sk_rcvlowat);

	bpf_setsockopt(tcp, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof(least));
}

/* What comes by TCP while an end leaves this map would be thrown away (sk_psock_verdict_recv, net/core/skmsg.c, where the
 * program is gone): with the socket locked, nothing does. */
static __always_inline void on_gathered(struct tcp_sock *tcp, struct end *own)
{
	u64 cookie = own->cookie;

	if (has_tcps((struct sock *)tcp))
		tell(tcp);
	else if (!has_queued((struct sock *)tcp))
		bpf_map_delete_elem(&splice_gathered, &cookie);
}

/* The iterator has the socket locked. */
SEC("iter/tcp")
int edges(struct bpf_iter__tcp *ctx)
{
	struct sock_common *any = ctx->sk_common;
	struct tcp_sock *tcp;
	struct end *own;

	if (!any)
		return 0;
	tcp = bpf_skc_to_tcp_sock(any);
	if (!tcp)
		return 0;
	own = bpf_sk_storage_get(&splice_ends, tcp, NULL, 0);
	if (!own || own->stage == STAGE_NONE)
		return 0;
	if (is_gathered((struct sock *)tcp))
		on_gathered(tcp, own);
	else if (!has_queued((struct sock *)tcp) && BPF_CORE_READ(tcp, rcv_nxt) != BPF_CORE_READ(tcp, copied_seq))
		tell(tcp);
	return 0;
}
