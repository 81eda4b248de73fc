/* What user space has to know of the ends that take part: `struct facts` of each. */
#include "arrivals.h"
#include "end.h"
#include "queue.h"
#include "unlike.h"
#include "waiters.h"
#include <bpf/bpf_helpers.h>

char terms[] SEC("license") = "GPL";

#define O_NONBLOCK 04000

static __always_inline u32 file_of(struct sock *sk)
{
	struct file *file = BPF_CORE_READ(sk, sk_socket, file);

	if (!file)
		return FACT_NO_FILE;
	return BPF_CORE_READ(file, f_flags) & O_NONBLOCK ? 0 : FACT_CAN_WAIT;
}

/* A client that nothing came to, and that has sent nothing, does not know its server. */
static __always_inline bool may_come(const struct end *own)
{
	return !own->is_followed || !own->peer.cookie || has_in_flight(own);
}

static __always_inline void psock_facts(struct sock *sk, struct facts *line)
{
	struct sk_psock *psock =
		(void *)SOCK_DATA_POINTER((u64)BPF_CORE_READ(sk, sk_user_data));
	bool is_queued, is_unread;

	if (!psock)
		return;
	line->flags |= FACT_JOINED;
	/* First who holds it, then the queue: whoever puts bytes there holds the sender's before. */
	line->users = BPF_CORE_READ(psock, refcnt.refs.counter) - 1;
	line->asleep = tasks_asleep(sk);
	is_queued = has_queued(sk);
	/* Behind the queue: what comes once that is read is told of by itself. */
	is_unread = BPF_CORE_READ((struct tcp_sock *)sk, rcv_nxt) != BPF_CORE_READ((struct tcp_sock *)sk, copied_seq);
	if (is_gathered(sk)) {
		line->flags |= FACT_GATHERED;
		is_unread = has_tcps(sk);
	}
	if (is_unread)
		line->flags |= FACT_UNREAD;
	if (!is_queued)
		return;
	line->flags |= FACT_QUEUED;
	if (bpf_core_field_exists(psock->msg_tot_len))
		line->queued = BPF_CORE_READ(psock, msg_tot_len);
}

SEC("iter/bpf_sk_storage_map")
int ends(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct sock *sk = ctx->sk;
	struct end *own = ctx->value;
	struct facts line = {};

	if (!sk || !own || (own->stage != STAGE_WATCHED && own->stage != STAGE_JOINED && !own->lingers))
		return 0;
	line.cookie = own->cookie;
	line.peer = own->peer.cookie;
	line.direct = own->sent.bytes;
	line.messages = own->messages;
	line.copied = BPF_CORE_READ((struct tcp_sock *)sk, copied_seq);
	line.written = BPF_CORE_READ((struct tcp_sock *)sk, write_seq);
	line.uid = BPF_CORE_READ(sk, sk_uid.val);
	line.inode = BPF_CORE_READ(sk, sk_socket, file, f_inode, i_ino);
	line.sender = own->sender;
	line.senders = own->senders;
	line.netns = BPF_CORE_READ(sk, __sk_common.skc_net.net, net_cookie);
	line.device = BPF_CORE_READ(sk, sk_dst_cache, dev, ifindex);
	line.flags = file_of(sk);
	if (own->is_server)
		line.flags |= FACT_SERVER;
	if (own->is_open)
		line.flags |= FACT_OPEN;
	if (own->leaving || own->lingers)
		line.flags |= FACT_LEAVING;
	/* Of its listener's, or set before: nobody saw it. */
	if (own->stage == STAGE_WATCHED && !own->incompatible && has_incompatible_options(sk) && !is_unlike(sk))
		own->incompatible = INCOMPATIBLE_OPTION;
	if (own->incompatible == INCOMPATIBLE_OPTION || has_incompatible_options(sk))
		line.flags |= FACT_UNLIKE;
	if (own->incompatible == INCOMPATIBLE_CALL)
		line.flags |= FACT_CALLS;
	if (own->has_peeked && !own->lingers)
		line.flags |= FACT_PEEKED;
	if (may_come(own))
		line.flags |= FACT_COMING;
	/* Behind that: what has come since is in the queue. */
	if (own->is_joined || own->lingers)
		psock_facts(sk, &line);
	/* Its program has closed it. */
	if (own->lingers && !(line.flags & FACT_JOINED))
		return 0;
	if (own->stage == STAGE_WATCHED && own->is_server) {
		u32 of_both = line.flags | file_of((void *)own->peer.sock);

		/* Many set O_NONBLOCK behind accept; an end without a file is closed, and stays what it was. */
		if (of_both & FACT_CAN_WAIT)
			own->may_wait = 1;
		else if (!(of_both & FACT_NO_FILE))
			own->may_wait = 0;
	}
	bpf_seq_write(ctx->meta->seq, &line, sizeof(line));
	return 0;
}
