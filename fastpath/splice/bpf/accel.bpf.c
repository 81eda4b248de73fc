/* The accelerator: what one end of a local TCP connection sends is put into the other end's receive
 * queue. Sockets are found and joined by a sockops program; each message is led by an sk_msg program,
 * inside the sender's system call. */
#include "enrol.h"
#include "guard.h"
#include "memory.h"
#include "open.h"
#include "reset_packets.h"
#include "others.h"
#include "send_flags.h"
#include "unlike.h"
#include "shared.h"
#include "order.bpf.c"
#include "calls.bpf.c"
#include "options.bpf.c"
#include "watched_calls.bpf.c"

char terms[] SEC("license") = "GPL";

SEC("sockops")
int splice_ops(struct bpf_sock_ops *ops)
{
	switch (FIELD(ops, op)) {
	case BPF_SOCK_OPS_TCP_LISTEN_CB:
		on_listen(ops);
		break;
	case BPF_SOCK_OPS_RWND_INIT:
		if (!FIELD(ops, is_fullsock))
			on_request(ops);
		break;
	case BPF_SOCK_OPS_TCP_CONNECT_CB:
		on_connect(ops);
		break;
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
		on_client(ops);
		break;
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		on_server(ops);
		break;
	case BPF_SOCK_OPS_STATE_CB:
		on_state(ops);
		break;
	}
	return 1;
}

/* Why this message must take TCP; COUNT_DIRECT_MESSAGES when it need not. */
static __always_inline enum count way_of(struct sk_msg_md *msg, struct end *own, u64 size, u32 place)
{
	if (own->mode == MODE_ALONE || !is_same_connection(msg, own))
		return COUNT_TCP_PEER_GONE;
	if (!has_met(own) || !own->is_open)
		return COUNT_TCP_NO_PEER_YET;
	if (control.stop)
		return COUNT_TCP_STOPPED;
	if (own->leaving)
		return COUNT_TCP_LEAVING;
	if (!takes_bytes(own))
		return COUNT_TCP_PEER_GONE;
	if (incompatible_of_either(own))
		return COUNT_TCP_LEAVING;
	if (own->long_send || own->takes_tcp || place >= IN_FLIGHT_MAX)
		return COUNT_TCP_SHARED;
	if (is_unlike((struct sock *)own->peer.sock))
		return COUNT_TCP_READER;
	if (own->mode == MODE_TCP && (!is_all_read(own) || waits_for_tcp(own)))
		return COUNT_TCP_UNREAD;
	if (!has_memory(own, size))
		return COUNT_TCP_MEMORY;
	if (control.guard && !has_room(own, size))
		return COUNT_TCP_PRESSURE;
	return COUNT_DIRECT_MESSAGES;
}

static __always_inline void note_sender(struct end *own)
{
	u64 sender = bpf_get_current_pid_tgid();

	if (own->sender == sender)
		return;
	own->sender = sender;
	own->senders++;
}

/* True when it was handed over. */
static __always_inline bool on_message(struct sk_msg_md *msg)
{
	struct counts *counts = counts_here();
	u64 size = msg->size;
	struct end *own;
	enum count way;
	u32 place;

	if (!msg->sk)
		return false;
	own = bpf_sk_storage_get(&splice_ends, msg->sk, NULL, 0);
	if (!counts || !own)
		return false;
	/* Before the first message, whenever the guard looks, and before anything may have to wait. */
	if (own->mode == MODE_TCP || (control.guard && own->credit < (s64)size + MESSAGE_COST))
		look_for_threads(msg, own);
	own->messages++;
	if (send_flags() & FLAGS_OF_TCP)
		note_incompatible_call((struct sock *)own->sock, own, CALL_SEND_FLAGS);
	if (control.pair)
		note_sender(own);
	look_for_long_send(own, size);
	place = place_in_flight(own);
	way = way_of(msg, own, size, place);
	if (way == COUNT_DIRECT_MESSAGES) {
		begin_flight(own, place);
		if (is_to_leave(own)) {
			way = COUNT_TCP_LEAVING;
		} else if (is_peer_closing(own) ||
			   bpf_msg_redirect_hash(msg, &splice_socks, &own->peer.cookie, BPF_F_INGRESS) != SK_PASS) {
			/* The other end is closed: TCP knows what to say. */
			own->mode = MODE_ALONE;
			way = COUNT_TCP_PEER_GONE;
		} else {
			if (own->mode != MODE_DIRECT) {
				own->mode = MODE_DIRECT;
				counts->of[COUNT_TO_DIRECT]++;
			}
			counts->of[COUNT_DIRECT_MESSAGES]++;
			counts->of[COUNT_DIRECT_BYTES] += size;
			if (control.verify)
				verify_direct(own->cookie, size);
			return true;
		}
		cancel_flight(own, place);
	}
	if (own->mode == MODE_DIRECT) {
		own->mode = MODE_TCP;
		counts->of[COUNT_TO_TCP]++;
	}
	if (way < COUNT_MAX)
		counts->of[way]++;
	counts->of[COUNT_TCP_MESSAGES]++;
	counts->of[COUNT_TCP_BYTES] += size;
	return false;
}

SEC("sk_msg")
int splice_msg(struct sk_msg_md *msg)
{
	on_message(msg);
	return SK_PASS;
}

#define LINGER_LOOKS_MAX (1 << 22)

static long linger(u32 n, u64 *until)
{
	return bpf_ktime_get_ns() >= *until;
}

/* Does what `--verify` is there to notice, and gives others time for what only happens in between. */
SEC("sk_msg")
int splice_msg_spoiling(struct sk_msg_md *msg)
{
	struct counts *counts = counts_here();
	u8 *first;

	if (!on_message(msg) || !counts)
		return SK_PASS;
	if (control.linger_ns) {
		u64 until = bpf_ktime_get_ns() + control.linger_ns;

		bpf_loop(LINGER_LOOKS_MAX, linger, &until, 0);
	}
	if (control.lose_each && counts->of[COUNT_DIRECT_MESSAGES] % control.lose_each == 0)
		bpf_msg_pop_data(msg, 0, 1, 0);
	if (!control.change_each || counts->of[COUNT_DIRECT_MESSAGES] % control.change_each ||
	    bpf_msg_pull_data(msg, 0, 1, 0))
		return SK_PASS;
	first = msg->data;
	if (first + 1 <= (u8 *)msg->data_end)
		*first ^= 1;
	return SK_PASS;
}

/* TCP would reset the connection. */
SEC("cgroup/sock_release")
int splice_closing(struct bpf_sock *sk)
{
	struct end *own = bpf_sk_storage_get(&splice_ends, sk, NULL, 0);

	if (own && own->is_joined)
		on_closing(own);
	return 1;
}

/* The last descriptor of a socket is closed: its program can neither send nor receive any more. */
SEC("cgroup/sock_release")
int splice_release(struct bpf_sock *sk)
{
	verify_released(bpf_get_socket_cookie(sk));
	return 1;
}
