/* A reader that waits for edges (EPOLLET) and was given less than it asked for takes its socket for empty (epoll(7)). So it
 * is where redirected bytes lie before TCP's: a receive returns the former alone (tcp_bpf_recvmsg, net/ipv4/tcp_bpf.c), and
 * the edge of the latter was given when they came. It is given again here. */
#include "end.h"
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

/* The iterator has the socket locked. Setting this option to what it is tells who waits, where there is something to read
 * (tcp_set_rcvlowat, net/ipv4/tcp.c). */
SEC("iter/tcp")
int edges(struct bpf_iter__tcp *ctx)
{
	struct sock_common *any = ctx->sk_common;
	struct tcp_sock *tcp;
	struct end *own;
	int least;

	if (!any)
		return 0;
	tcp = bpf_skc_to_tcp_sock(any);
	if (!tcp)
		return 0;
	own = bpf_sk_storage_get(&splice_ends, tcp, NULL, 0);
	if (!own || own->stage == STAGE_NONE || has_queued((struct sock *)tcp) ||
	    BPF_CORE_READ(tcp, rcv_nxt) == BPF_CORE_READ(tcp, copied_seq))
		return 0;
	least = BPF_CORE_READ((struct sock *)tcp, sk_rcvlowat);
	bpf_setsockopt(tcp, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof(least));
	return 0;
}
