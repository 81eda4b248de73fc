/* Threads whose affinity was changed (`--pair`), kept true whatever they do: user space restores each of them. */
#include "contract.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

char terms[] SEC("license") = "GPL";

_Static_assert(sizeof(struct placed) == 8 * (4 + PLACED_WORDS), "load/placed.rs");

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

/* Of a cpumask of this kernel. */
const volatile u32 mask_words = 1;

/* What sched_setaffinity(2) was last told of a thread: the kernel keeps it (Linux 6.2) beside the mask that is left of it by
 * control groups, and applies it again when these have other processors. 0 where that is not known. */
static __always_inline u64 asked(struct task_struct *task)
{
	if (!bpf_core_field_exists(task->user_cpus_ptr))
		return 0;
	return (u64)BPF_CORE_READ(task, user_cpus_ptr);
}

static __always_inline bool is_only(u64 mask, u64 processor)
{
	for (u32 i = 0; i < PLACED_WORDS; i++) {
		u64 word = 0;

		if (i >= mask_words)
			break;
		bpf_probe_read_kernel(&word, sizeof(word), (void *)(mask + i * sizeof(word)));
		if (word != (i == processor / 64 ? 1ULL << (processor % 64) : 0))
			return false;
	}
	return true;
}

/* A new thread, or process, has the mask of the one that made it (sched_setaffinity(2)). It was copied before its
 * maker may have been restored. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(placed_fork, struct task_struct *parent, struct task_struct *child)
{
	u32 from = BPF_CORE_READ(parent, pid), to = BPF_CORE_READ(child, pid);
	struct placed *found = bpf_map_lookup_elem(&splice_placed, &from);
	struct placed own;

	if (!found)
		return 0;
	own = *found;
	own.asked_at = asked(child);
	own.state = own.asked_at && !is_only(own.asked_at, own.processor) ? PLACED_RESTORED
									  : PLACED_UNKNOWN;
	bpf_map_update_elem(&splice_placed, &to, &own, BPF_ANY);
	return 0;
}

/* Who was the last to set each thread's affinity. */
SEC("iter/task")
int placed_look(struct bpf_iter__task *context)
{
	struct task_struct *task = context->task;
	struct placed *found;
	u32 thread;
	u64 now;

	if (!task)
		return 0;
	thread = BPF_CORE_READ(task, pid);
	found = bpf_map_lookup_elem(&splice_placed, &thread);
	now = asked(task);
	if (!found || !now || found->state == PLACED_RESTORED)
		return 0;
	if (!found->asked_at)
		found->asked_at = now;
	found->state = now == found->asked_at && is_only(now, found->processor) ? PLACED_KEPT
										: PLACED_CHANGED;
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
