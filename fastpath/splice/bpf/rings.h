/* Programs that have an io_uring may send with IORING_OP_SEND_ZC or IORING_OP_SENDMSG_ZC. A socket that was ever in a map of
 * sockets fails these with EOPNOTSUPP, until it is closed: the map clears SOCK_SUPPORT_ZC (sock_replace_proto,
 * include/net/sock.h), and nothing sets it again. Which operations a ring will be used for is not known when it is made, so
 * whoever has one stays on TCP. */
#pragma once
#include "calls.bpf.c"
#include "incompatible.h"
#include "send_flags.h"
#include <bpf/bpf_tracing.h>

/* With the name of its file, for user space to say. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct ring_user);
	__type(value, struct program_name);
} splice_rings SEC(".maps");

/* Descriptors that are looked at, of one process. */
#define DESCRIPTORS_MAX (1 << 20)

struct descriptors {
	struct file **files;
	u32 n;
};

static __always_inline struct ring_user ring_user_of(struct task_struct *task)
{
	struct ring_user user = {};

	user.memory = (u64)BPF_CORE_READ(task, mm);
	user.process = BPF_CORE_READ(task, tgid);
	return user;
}

/* It has accepted nothing yet, or is an end: that one is out of reach here, so by its cookie. */
static __always_inline void mark_socket(struct sock *sk)
{
	u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);
	u32 one = 1, as = INCOMPATIBLE_CALL;
	struct listener here = {};
	u64 cookie;

	if ((family != AF_INET && family != AF_INET6) || BPF_CORE_READ(sk, sk_protocol) != IPPROTO_TCP)
		return;
	if (BPF_CORE_READ(sk, __sk_common.skc_state) == TCP_LISTEN) {
		here.netns = BPF_CORE_READ(sk, __sk_common.skc_net.net, net_cookie);
		here.port = BPF_CORE_READ(sk, __sk_common.skc_num);
		bpf_map_update_elem(&splice_ports, &here, &one, BPF_ANY);
		return;
	}
	cookie = BPF_CORE_READ(sk, __sk_common.skc_cookie.counter);
	/* Without one it never took part. */
	if (!cookie)
		return;
	bpf_map_update_elem(&splice_incompatible_ends, &cookie, &as, BPF_ANY);
	__sync_fetch_and_add(&changes, 1);
}

static long look_at_descriptor(u32 fd, struct descriptors *all)
{
	struct socket *socket;
	struct file *file = NULL;
	struct sock *sk;

	if (fd >= all->n)
		return 1;
	bpf_probe_read_kernel(&file, sizeof(file), all->files + fd);
	if (!file || (BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) != S_IFSOCK)
		return 0;
	socket = BPF_CORE_READ(file, private_data);
	sk = BPF_CORE_READ(socket, sk);
	if (sk)
		mark_socket(sk);
	return 0;
}

/* Once of each process: what it opens later, its file's name or its sends tell. */
static __always_inline void on_ring(struct task_struct *task)
{
	struct ring_user user = ring_user_of(task);
	struct program_name name = {};
	struct descriptors all = {};
	struct file_id file;
	struct fdtable *table;
	u32 one = 1;

	if (!user.memory || bpf_map_lookup_elem(&splice_rings, &user) || program_is_of(task) == NAME_ALLOWED)
		return;
	program_name_of(task, name.of);
	bpf_map_update_elem(&splice_rings, &user, &name, BPF_ANY);
	file = program_file_of(task);
	bpf_map_update_elem(&splice_incompatible, &file, &one, BPF_ANY);
	table = BPF_CORE_READ(task, files, fdt);
	if (!table)
		return;
	all.n = BPF_CORE_READ(table, max_fds);
	all.files = BPF_CORE_READ(table, fd);
	bpf_loop(DESCRIPTORS_MAX, look_at_descriptor, &all, 0);
}

/* A connection that such a process was given by another one. Both ends have sent before they are joined. */
static __always_inline void look_for_ring(struct sock *sk, const struct end *own)
{
	struct ring_user user;

	if (own->stage != STAGE_WATCHED || own->incompatible)
		return;
	user = ring_user_of((void *)bpf_get_current_task());
	if (bpf_map_lookup_elem(&splice_rings, &user))
		on_incompatible_call(sk, CALL_RING);
}

/* Before io_uring_setup(2) returns. */
SEC("tp_btf/io_uring_create")
int BPF_PROG(splice_on_ring)
{
	on_ring((void *)bpf_get_current_task());
	return 0;
}

/* Those that were there before. */
SEC("iter/task")
int splice_ring_threads(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	if (!task)
		return 0;
	find_registers(task);
	if (bpf_core_field_exists(task->io_uring) && BPF_CORE_READ(task, io_uring))
		on_ring(task);
	return 0;
}
