/* Threads whose affinity was changed (`--pair`), kept true whatever they do: user space restores each of them. */
#include "contract.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

char terms[] SEC("license") = "GPL";

/* By thread id. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, u32);
	__type(value, struct placed);
} splice_placed SEC(".maps");

struct pair_counts {
	u64 of[4];
};

/* From COUNT_PAIRED on. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct pair_counts);
} splice_pairs SEC(".maps");

/* A new thread, or process, has the mask of the one that made it (sched_setaffinity(2)). */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(placed_fork, struct task_struct *parent, struct task_struct *child)
{
	u32 from = BPF_CORE_READ(parent, pid), to = BPF_CORE_READ(child, pid);
	struct placed *found = bpf_map_lookup_elem(&splice_placed, &from);

	if (found)
		bpf_map_update_elem(&splice_placed, &to, found, BPF_ANY);
	return 0;
}

/* A thread that executes a program becomes its process's first one, and gets that one's id. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(placed_exec, struct task_struct *task, int old)
{
	u32 from = old, to = BPF_CORE_READ(task, pid);
	struct placed *found;

	if (from == to)
		return 0;
	found = bpf_map_lookup_elem(&splice_placed, &from);
	if (!found)
		return 0;
	bpf_map_update_elem(&splice_placed, &to, found, BPF_ANY);
	bpf_map_delete_elem(&splice_placed, &from);
	return 0;
}

/* Its id may be another thread's next. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(placed_exit, struct task_struct *task)
{
	u32 thread = BPF_CORE_READ(task, pid);

	bpf_map_delete_elem(&splice_placed, &thread);
	return 0;
}
