/* The calls by which programs send and receive, at their beginnings and ends. Bytes are read where
 * programs have them: when a call ends, its buffer holds what the kernel took or gave. */
#pragma once
#include "stream.h"
#include "verify.h"
#include <bpf/bpf_tracing.h>

/* Of the x86-64 system calls (arch/x86/entry/syscalls/syscall_64.tbl). */
enum {
	NR_READ = 0,
	NR_WRITE = 1,
	NR_READV = 19,
	NR_WRITEV = 20,
	NR_SENDFILE = 40,
	NR_SENDTO = 44,
	NR_RECVFROM = 45,
	NR_SENDMSG = 46,
	NR_RECVMSG = 47,
	NR_SHUTDOWN = 48,
	NR_IO_SUBMIT = 209,
	NR_SPLICE = 275,
	NR_RECVMMSG = 299,
	NR_SENDMMSG = 307,
	NR_PREADV2 = 327,
	NR_PWRITEV2 = 328,
	NR_IO_URING_SETUP = 425,
	NR_IO_URING_ENTER = 426,
};
/* include/linux/socket.h */
enum {
	MSG_OOB = 1,
	MSG_PEEK = 2,
	MSG_TRUNC = 0x20,
	MSG_ERRQUEUE = 0x2000,
};
enum {
	/* Of struct thread_info.status: a call of another table (arch/x86/include/asm/thread_info.h). */
	TS_COMPAT = 2,
	S_IFMT = 0170000,
	S_IFSOCK = 0140000,
	/* Of enum sock_flags (include/net/sock.h): a FIN has come. */
	SOCK_DONE_BIT = 1 << 1,
};

enum shape {
	SHAPE_NONE,
	/* A buffer and its size. */
	SHAPE_BUFFER,
	/* struct iovecs and their number. */
	SHAPE_PIECES,
	/* struct user_msghdr */
	SHAPE_MESSAGE,
	/* Moves bytes in ways that are not followed. */
	SHAPE_OTHER,
};

struct call {
	u64 cookie;
	u64 at;
	u64 size;
	u32 shape;
	u32 is_send;
};

/* By thread: calls on watched sockets that have begun. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, u64);
	__type(value, struct call);
} calls SEC(".maps");

static __always_inline bool is_other_table(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	return BPF_CORE_READ(task, thread_info.status) & TS_COMPAT;
}

/* The watched socket behind a descriptor of the running thread. */
static __always_inline struct watched *behind(u32 fd)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **slot, *file = NULL;
	struct socket *socket;

	if (!table || fd >= BPF_CORE_READ(table, max_fds))
		return NULL;
	slot = BPF_CORE_READ(table, fd) + fd;
	bpf_probe_read_kernel(&file, sizeof(file), slot);
	if (!file || (BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) != S_IFSOCK)
		return NULL;
	socket = BPF_CORE_READ(file, private_data);
	return watched_of((u64)BPF_CORE_READ(socket, sk, __sk_common.skc_cookie.counter));
}

static __always_inline enum shape shape_of(u64 nr)
{
	switch (nr) {
	case NR_READ:
	case NR_WRITE:
	case NR_SENDTO:
	case NR_RECVFROM:
		return SHAPE_BUFFER;
	case NR_READV:
	case NR_WRITEV:
	case NR_PREADV2:
	case NR_PWRITEV2:
		return SHAPE_PIECES;
	case NR_SENDMSG:
	case NR_RECVMSG:
		return SHAPE_MESSAGE;
	case NR_SENDFILE:
	case NR_SPLICE:
	case NR_SENDMMSG:
	case NR_RECVMMSG:
		return SHAPE_OTHER;
	}
	return SHAPE_NONE;
}

static __always_inline bool sends(u64 nr)
{
	return nr == NR_WRITE || nr == NR_WRITEV || nr == NR_SENDTO || nr == NR_SENDMSG || nr == NR_SENDMMSG ||
	       nr == NR_PWRITEV2;
}

static __always_inline u32 flags_of(u64 nr, const struct pt_regs *regs)
{
	if (nr == NR_SENDTO || nr == NR_RECVFROM)
		return BPF_CORE_READ(regs, r10);
	if (nr == NR_SENDMSG || nr == NR_RECVMSG)
		return BPF_CORE_READ(regs, dx);
	return 0;
}

/* sendfile and splice have two descriptors; what comes from a socket is the receiver's doubt. */
static __always_inline void on_two_files(u64 nr, const struct pt_regs *regs)
{
	u32 from = nr == NR_SPLICE ? BPF_CORE_READ(regs, di) : BPF_CORE_READ(regs, si);
	u32 to = nr == NR_SPLICE ? BPF_CORE_READ(regs, dx) : BPF_CORE_READ(regs, di);
	struct watched *end = behind(from);

	if (end)
		end->received.doubts |= DOUBT_UNSEEN;
	end = behind(to);
	if (end)
		end->sent.doubts |= DOUBT_UNSEEN;
}

static __always_inline void on_few(u64 nr, const struct pt_regs *regs)
{
	u32 process = bpf_get_current_pid_tgid() >> 32, one = 1;
	struct watched *end;

	if (nr == NR_SHUTDOWN) {
		end = behind(BPF_CORE_READ(regs, di));
		/* SHUT_RD and SHUT_RDWR; SHUT_WR is 1. */
		if (end && BPF_CORE_READ(regs, si) != 1)
			end->received.doubts |= IS_SHUT;
	} else {
		bpf_map_update_elem(&uses_rings, &process, &one, BPF_ANY);
	}
}

SEC("tp_btf/sys_enter")
int BPF_PROG(splice_call, const struct pt_regs *regs, long nr)
{
	enum shape shape = shape_of(nr);
	u64 thread = bpf_get_current_pid_tgid();
	struct call call = {};
	struct watched *end;
	struct way *way;
	u32 flags;

	if (shape == SHAPE_NONE) {
		if ((nr == NR_SHUTDOWN || nr == NR_IO_SUBMIT || nr == NR_IO_URING_SETUP ||
		     nr == NR_IO_URING_ENTER) &&
		    !is_other_table())
			on_few(nr, regs);
		return 0;
	}
	if (is_other_table())
		return 0;
	if (nr == NR_SENDFILE || nr == NR_SPLICE) {
		on_two_files(nr, regs);
		return 0;
	}
	end = behind(BPF_CORE_READ(regs, di));
	if (!end)
		return 0;
	flags = flags_of(nr, regs);
	call.is_send = sends(nr);
	way = call.is_send ? &end->sent : &end->received;
	/* Takes nothing away. */
	if (!call.is_send && flags & (MSG_PEEK | MSG_ERRQUEUE))
		return 0;
	if (flags & MSG_OOB || (!call.is_send && flags & MSG_TRUNC))
		shape = SHAPE_OTHER;
	call.cookie = end->cookie;
	call.at = BPF_CORE_READ(regs, si);
	call.size = BPF_CORE_READ(regs, dx);
	call.shape = shape;
	if (bpf_map_update_elem(&calls, &thread, &call, BPF_ANY)) {
		way->doubts |= DOUBT_UNSEEN;
		return 0;
	}
	if (__sync_fetch_and_add(&way->calls, 1))
		way->doubts |= DOUBT_TOGETHER;
	return 0;
}

static __always_inline void add_call(struct way *way, const struct call *call, u64 bytes)
{
	/* struct user_msghdr (include/linux/socket.h): name, its length, iovecs, their number. */
	u64 pieces = 0;

	switch (call->shape) {
	case SHAPE_BUFFER:
		add_to(way, call->at, 0, bytes);
		break;
	case SHAPE_PIECES:
		add_to(way, 0, call->at, bytes);
		break;
	case SHAPE_MESSAGE:
		if (bpf_probe_read_user(&pieces, sizeof(pieces), (void *)(call->at + 16)) || !pieces) {
			way->doubts |= DOUBT_UNREADABLE;
			way->bytes += bytes;
			break;
		}
		add_to(way, 0, pieces, bytes);
		break;
	default:
		way->doubts |= DOUBT_UNSEEN;
	}
}

/* recv said 0: the other end has ended its stream, unless nothing was asked for, or this end was told
 * so by itself or by a reset. */
static __always_inline void on_nothing(struct watched *end, const struct call *call)
{
	struct sock *sk = (struct sock *)end->sock;

	if (call->shape != SHAPE_BUFFER || call->size == 0 || end->received.doubts & IS_SHUT)
		return;
	if (BPF_CORE_READ(sk, __sk_common.skc_flags) & SOCK_DONE_BIT)
		end->received.doubts |= IS_AT_END;
}

/* A call that began before its connection was joined has taken bytes. What such a call sent is in the
 * kernel's count. */
static __always_inline void on_unknown(const struct pt_regs *regs)
{
	u64 nr = BPF_CORE_READ(regs, orig_ax);
	struct watched *end;

	if (shape_of(nr) == SHAPE_NONE || sends(nr) || nr == NR_SENDFILE || nr == NR_SPLICE || is_other_table() ||
	    flags_of(nr, regs) & (MSG_PEEK | MSG_ERRQUEUE))
		return;
	end = behind(BPF_CORE_READ(regs, di));
	if (end)
		end->received.doubts |= DOUBT_EARLY;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(splice_called, const struct pt_regs *regs, long returned)
{
	u64 thread = bpf_get_current_pid_tgid();
	struct call *found = bpf_map_lookup_elem(&calls, &thread), call;
	struct watched *end;
	struct way *way;

	if (!found) {
		if (returned > 0)
			on_unknown(regs);
		return 0;
	}
	call = *found;
	bpf_map_delete_elem(&calls, &thread);
	end = watched_of(call.cookie);
	if (!end)
		return 0;
	way = call.is_send ? &end->sent : &end->received;
	if (returned > 0)
		add_call(way, &call, returned);
	else if (returned == 0 && !call.is_send)
		on_nothing(end, &call);
	if (call.is_send && !(way->doubts & DOUBT_TOGETHER))
		see_kernels_count(end);
	__sync_fetch_and_add(&way->calls, -1);
	return 0;
}
