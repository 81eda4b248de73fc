/* Whether TCP would still take bytes from one end and give them to the other one. Where not, it knows what to say:
 * EPIPE, SIGPIPE, a reset. */
#pragma once
#include "state.h"
#include <bpf/bpf_core_read.h>

/* A socket may be disconnected and connected again: its bytes are for the connection that joined. */
static __always_inline bool is_same_connection(struct sk_msg_md *msg, const struct end *own)
{
	return own->stage == STAGE_JOINED && FIELD(msg, remote_ip4) == own->remote_ip4 &&
	       FIELD(msg, remote_port) == own->remote_port && FIELD(msg, local_port) == own->local_port;
}

/* RFC 9293 section 3.6: an end that has sent its FIN still receives. The other one may be another connection's. */
static __noinline bool takes_bytes(const struct end *own)
{
	struct sock *sender = (struct sock *)own->sock, *receiver = (struct sock *)own->peer.sock;
	unsigned char state = BPF_CORE_READ(receiver, __sk_common.skc_state);

	return BPF_CORE_READ(receiver, __sk_common.skc_num) == bpf_ntohl(own->remote_port) &&
	       BPF_CORE_READ(receiver, __sk_common.skc_dport) == bpf_htons(own->local_port) &&
	       !(BPF_CORE_READ(sender, sk_shutdown) & SEND_SHUTDOWN) &&
	       !(BPF_CORE_READ(receiver, sk_shutdown) & RCV_SHUTDOWN) &&
	       (state == TCP_ESTABLISHED || state == TCP_FIN_WAIT1 || state == TCP_FIN_WAIT2);
}
