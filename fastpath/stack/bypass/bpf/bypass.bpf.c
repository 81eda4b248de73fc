/* Calls of a command and its children on sockets of IP, and of the stack, that did not come by the preloaded library's hooks:
 * neither was the instruction in the library, nor is there the mark on the stack that the library puts there while a function of
 * libc's works for it. */
#include "bypass.h"
#include "calls.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "GPL";

const volatile struct bypass_config config = {};
struct bypass_counters counters = {};

/* By process: its number in its own pid namespace. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32);
	__type(value, u32);
} watched SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct bypass_key);
	__type(value, struct bypass_calls);
} calls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
} events SEC(".maps");

static __always_inline void count(u64 *counter)
{
	__sync_fetch_and_add(counter, 1);
}

/* A process's number in its own pid namespace. */
static __always_inline u32 number_within(struct pid *pid)
{
	u32 level = BPF_CORE_READ(pid, level), number = 0;

	/* PID_NS_MAX_LEVEL (kernel/pid_namespace.c) */
	if (level > 32)
		return 0;
	bpf_core_read(&number, sizeof(number), &pid->numbers[level].nr);
	return number;
}

static __always_inline void watch(u32 process, struct pid *pid)
{
	u32 number = number_within(pid);

	if (bpf_map_update_elem(&watched, &process, &number, BPF_NOEXIST)) {
		count(&counters.unwatched);
		return;
	}
	count(&counters.running);
	count(&counters.processes);
}

static __always_inline bool is_watched(u32 process)
{
	struct bpf_pidns_info ids = {};

	if (bpf_map_lookup_elem(&watched, &process))
		return true;
	if (counters.processes || bpf_get_ns_current_pid_tgid(config.namespace_device, config.namespace_inode, &ids,
							      sizeof(ids)) ||
	    ids.tgid != config.root)
		return false;
	watch(process, BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), group_leader, thread_pid));
	return true;
}

#define MARK_CHUNKS 8
#define MARK_WORDS 8

/* The mark is two words: config.mark, and its own address. What libc has on the stack of a system call is less than half a
 * KiB. */
static __always_inline bool is_marked(u64 stack)
{
	/* One more than a chunk: the mark may lie across its end. */
	u64 words[MARK_WORDS + 1];

	for (u32 chunk = 0; chunk < MARK_CHUNKS; chunk++, stack += MARK_WORDS * 8) {
		if (bpf_probe_read_user(words, sizeof(words), (void *)stack))
			return false;
		for (u32 i = 0; i < MARK_WORDS; i++)
			if (words[i] == config.mark && words[i + 1] == stack + i * 8)
				return true;
	}
	return false;
}

struct place {
	struct bypass_event *event;
	u64 at;
	u32 is_own;
};

static long on_vma(struct task_struct *task, struct vm_area_struct *vma, struct place *place)
{
	struct bypass_event *event = place->event;
	struct file *file = BPF_CORE_READ(vma, vm_file);

	if (!file)
		return 0;
	event->file_offset = place->at - BPF_CORE_READ(vma, vm_start) + (BPF_CORE_READ(vma, vm_pgoff) << 12);
	bpf_probe_read_kernel_str(event->file, sizeof(event->file), BPF_CORE_READ(file, f_path.dentry, d_name.name));
	/* Not by its inode: in a file system over others it has two. */
	place->is_own = !bpf_strncmp(event->file, sizeof(event->file), LIBRARY);
	return 0;
}

/* Whose the descriptor is. */
static __always_inline u32 family_of(s32 fd)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file **slot, *file = NULL;
	struct socket *socket;
	struct sock *sk;
	u32 family;

	if (fd < 0 || !table || (u32)fd >= BPF_CORE_READ(table, max_fds))
		return FAMILY_OTHER;
	slot = BPF_CORE_READ(table, fd) + (u32)fd;
	bpf_probe_read_kernel(&file, sizeof(file), slot);
	if (!file || (BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) != S_IFSOCK)
		return FAMILY_OTHER;
	socket = BPF_CORE_READ(file, private_data);
	sk = BPF_CORE_READ(socket, sk);
	family = BPF_CORE_READ(sk, __sk_common.skc_family);
	if (family == AF_INET || family == AF_INET6)
		return family;
	/* Ends of a pair have no name; where a program asks the instance, the other end has the listener's. */
	if (family == AF_UNIX && config.instance &&
	    number_within(BPF_CORE_READ(sk, sk_peer_pid)) == config.instance) {
		struct sock *other = BPF_CORE_READ((struct unix_sock *)sk, peer);

		if (!BPF_CORE_READ((struct unix_sock *)other, addr))
			return FAMILY_STACK;
	}
	return FAMILY_OTHER;
}

#define POLLED_MAX 16

/* struct pollfd: a descriptor and what is asked of it. */
static __always_inline u32 first_polled(u64 at, u64 descriptors, s32 *fd)
{
	for (u32 i = 0; i < POLLED_MAX && i < descriptors; i++) {
		u32 family;

		if (bpf_probe_read_user(fd, sizeof(*fd), (void *)(at + i * 8)))
			break;
		family = family_of(*fd);
		if (family != FAMILY_OTHER)
			return family;
	}
	return FAMILY_OTHER;
}

#define RANGE_MAX 64

static __always_inline u32 first_in_range(u32 from, u32 to, s32 *fd)
{
	for (u32 i = 0; i < RANGE_MAX; i++) {
		u32 family;

		if (from + i < from || from + i > to)
			break;
		family = family_of(*fd = from + i);
		if (family != FAMILY_OTHER)
			return family;
	}
	return FAMILY_OTHER;
}

static __always_inline void tell(struct bypass_event *event, const struct bypass_key *key)
{
	struct task_struct *leader = BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), group_leader);

	event->process = number_within(BPF_CORE_READ(leader, thread_pid));
	event->key_process = key->process;
	bpf_probe_read_kernel(event->comm, sizeof(event->comm), leader->comm);
	if (bpf_ringbuf_output(&events, event, sizeof(*event), 0))
		count(&counters.untold);
}

static __always_inline void by_passed(const struct pt_regs *regs, u32 number, s32 fd, u32 family, bool is_compat)
{
	struct bypass_key key = {
		.process = bpf_get_current_pid_tgid() >> 32,
		.number = number | (is_compat ? IS_COMPAT : 0),
		.at = BPF_CORE_READ(regs, ip),
	};
	struct bypass_calls *found = bpf_map_lookup_elem(&calls, &key), first = {.calls = 1};
	struct bypass_event event = {
		.kind = EVENT_CALL,
		.number = key.number,
		.fd = fd,
		.family = family,
		.at = key.at,
	};
	struct place place = {.event = &event, .at = key.at};

	if (found) {
		count(&found->calls);
		return;
	}
	/* EBUSY: another thread changes what is mapped. */
	event.is_file_unknown = bpf_find_vma(bpf_get_current_task_btf(), key.at, on_vma, &place, 0) != 0;
	first.is_own = place.is_own;
	if (bpf_map_update_elem(&calls, &key, &first, BPF_NOEXIST)) {
		/* Another thread was as fast; or there is no room. */
		found = bpf_map_lookup_elem(&calls, &key);
		count(found ? &found->calls : &counters.unnamed);
		return;
	}
	if (!place.is_own)
		tell(&event, &key);
}

SEC("tp_btf/sys_enter")
int BPF_PROG(bypass_call, const struct pt_regs *regs, long number)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	bool is_compat = BPF_CORE_READ(task, thread_info.status) & TS_COMPAT;
	u32 family = FAMILY_OTHER;
	s32 fd = -1;

	if (!is_watched(bpf_get_current_pid_tgid() >> 32))
		return 0;
	if (is_compat) {
		/* Nothing is preloaded into those programs. */
		if (has_descriptor_of_compat(number))
			family = family_of(fd = BPF_CORE_READ(regs, bx));
		if (family != FAMILY_OTHER || is_network_of_compat(number))
			by_passed(regs, number, fd, family, true);
		return 0;
	}
	switch (shape_of(number)) {
	case SHAPE_NONE:
		return 0;
	case SHAPE_RING:
		break;
	case SHAPE_MAKES:
		family = BPF_CORE_READ(regs, di);
		if (family != AF_INET && family != AF_INET6)
			return 0;
		break;
	case SHAPE_POLL:
		family = first_polled(BPF_CORE_READ(regs, di), BPF_CORE_READ(regs, si), &fd);
		if (family == FAMILY_OTHER)
			return 0;
		break;
	case SHAPE_THIRD:
		family = family_of(fd = BPF_CORE_READ(regs, dx));
		if (family == FAMILY_OTHER)
			return 0;
		break;
	case SHAPE_FIRST_OR_SECOND:
		family = family_of(fd = BPF_CORE_READ(regs, di));
		if (family == FAMILY_OTHER)
			family = family_of(fd = BPF_CORE_READ(regs, si));
		if (family == FAMILY_OTHER)
			return 0;
		break;
	case SHAPE_IOCTL:
		family = family_of(fd = BPF_CORE_READ(regs, di));
		if (family == FAMILY_OTHER || (u32)BPF_CORE_READ(regs, si) == TCGETS)
			return 0;
		break;
	case SHAPE_RANGE:
		family = first_in_range(BPF_CORE_READ(regs, di), BPF_CORE_READ(regs, si), &fd);
		if (family == FAMILY_OTHER)
			return 0;
		break;
	case SHAPE_FIRST_OR_THIRD:
		family = family_of(fd = BPF_CORE_READ(regs, di));
		if (family == FAMILY_OTHER)
			family = family_of(fd = BPF_CORE_READ(regs, dx));
		if (family == FAMILY_OTHER)
			return 0;
		break;
	case SHAPE_FIRST:
		family = family_of(fd = BPF_CORE_READ(regs, di));
		if (family == FAMILY_OTHER)
			return 0;
		break;
	}
	if (!is_marked(BPF_CORE_READ(regs, sp)))
		by_passed(regs, number, fd, family, false);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(bypass_fork, struct task_struct *parent, struct task_struct *child)
{
	u32 from = BPF_CORE_READ(parent, tgid), to = BPF_CORE_READ(child, tgid);

	if (from != to && bpf_map_lookup_elem(&watched, &from))
		watch(to, BPF_CORE_READ(child, group_leader, thread_pid));
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(bypass_exit, struct task_struct *task)
{
	struct bypass_key key = {.process = BPF_CORE_READ(task, tgid)};
	struct bypass_event event = {.kind = EVENT_END, .fd = -1};

	/* Its last thread. */
	if (BPF_CORE_READ(task, signal, live.counter) || bpf_map_delete_elem(&watched, &key.process))
		return 0;
	tell(&event, &key);
	__sync_fetch_and_add(&counters.running, -1);
	return 0;
}
