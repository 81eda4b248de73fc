/* What programs do with a socket that redirected bytes do not keep to. Such an end stays on TCP, or gets back to it:
 * no message of either end is redirected from then on. */
#pragma once
#include "state.h"
#include "unlike.h"
#include <bpf/bpf_core_read.h>

static __always_inline struct file_id program_file_of(struct task_struct *task)
{
	struct inode *inode = BPF_CORE_READ(task, mm, exe_file, f_inode);
	struct file_id id = {};

	if (inode) {
		id.device = BPF_CORE_READ(inode, i_sb, s_dev);
		id.inode = BPF_CORE_READ(inode, i_ino);
	}
	return id;
}

static __always_inline struct file_id program_file(void)
{
	return program_file_of((void *)bpf_get_current_task());
}

static __always_inline void program_name_of(struct task_struct *task, char *name)
{
	const unsigned char *file = BPF_CORE_READ(task, mm, exe_file, f_path.dentry, d_name.name);

	bpf_probe_read_kernel_str(name, NAME_MAX, file);
}

static __always_inline void program_name(char *name)
{
	program_name_of((void *)bpf_get_current_task(), name);
}

static __always_inline bool is_digit(char of)
{
	return of >= '0' && of <= '9';
}

/* 0: nothing is said of it. What is said of the longest name counts: `python3.11`, `python3`, `python`. */
static __always_inline enum name_is program_is_of(struct task_struct *task)
{
	struct program_name name = {};
	char next = 0;
	u32 *found;

	program_name_of(task, name.of);
	found = bpf_map_lookup_elem(&splice_refused, &name);
	if (found)
		return *found & NAME_IS;
	for (int at = NAME_MAX - 2; at > 0; at--) {
		char here = name.of[at];
		bool begins_version = is_digit(here) || ((here == '.' || here == '-') && is_digit(next));

		next = here;
		name.of[at] = 0;
		if (!begins_version)
			continue;
		found = bpf_map_lookup_elem(&splice_refused, &name);
		if (found && *found & NAME_ANY_VERSION)
			return *found & NAME_IS;
	}
	return 0;
}

static __always_inline enum name_is program_is(void)
{
	return program_is_of((void *)bpf_get_current_task());
}

static __always_inline void tell(u32 level, u32 what)
{
	struct incompatible_use use = {.level = level, .what = what};
	u32 process = bpf_get_current_pid_tgid() >> 32;

	program_name(use.name);
	bpf_map_update_elem(&splice_uses, &use, &process, BPF_ANY);
}

static __always_inline void make_incompatible(struct end *own, u32 as)
{
	u64 cookie = own->cookie;

	if (own->incompatible)
		return;
	own->incompatible = as;
	if (!cookie)
		return;
	bpf_map_update_elem(&splice_incompatible_ends, &cookie, &as, BPF_ANY);
	__sync_fetch_and_add(&changes, 1);
}

static __always_inline u32 incompatible_of_either(struct end *own)
{
	u32 now = changes, *found;

	if (own->incompatible)
		return own->incompatible;
	if (own->changes_seen != now) {
		own->changes_seen = now;
		own->credit = 0;
		found = bpf_map_lookup_elem(&splice_incompatible_ends, &own->cookie);
		/* By one that had no hold of this end (rings.h). */
		if (found)
			return own->incompatible = *found;
		found = bpf_map_lookup_elem(&splice_incompatible_ends, &own->peer.cookie);
		if (found)
			own->peer_incompatible = *found;
	}
	return own->peer_incompatible;
}

/* Its program takes no part any more, nor do connections that its listener accepts. */
static __always_inline void mark_program(struct sock *sk, const struct end *own)
{
	struct file_id file = program_file();
	struct listener here = {};
	u32 one = 1;

	bpf_map_update_elem(&splice_incompatible, &file, &one, BPF_ANY);
	if (!own->is_server)
		return;
	here.netns = BPF_CORE_READ(sk, __sk_common.skc_net.net, net_cookie);
	here.port = BPF_CORE_READ(sk, __sk_common.skc_num);
	bpf_map_update_elem(&splice_ports, &here, &one, BPF_ANY);
}

static __always_inline void note_incompatible_call(struct sock *sk, struct end *own, enum incompatible_call call)
{
	if (own->stage == STAGE_NONE || own->incompatible == INCOMPATIBLE_CALL)
		return;
	tell(LEVEL_CALL, call);
	mark_program(sk, own);
	make_incompatible(own, INCOMPATIBLE_CALL);
}

static __always_inline void on_incompatible_call(struct sock *sk, enum incompatible_call call)
{
	struct end *own = bpf_sk_storage_get(&splice_ends, sk, NULL, 0);

	if (own)
		note_incompatible_call(sk, own, call);
}
