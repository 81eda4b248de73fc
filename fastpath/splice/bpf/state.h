/* What is known of sockets. Nothing here is pinned: all of it goes with the last descriptor. */
#pragma once
#include "end.h"
#include "tuple.h"

struct control control;

/* How often an end became incompatible, or its buffers another size: whoever sends looks whether it was the other one. In a
 * map of its own: user space writes `control`. */
u32 changes SEC(".data.times");

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct end);
} splice_ends SEC(".maps");

/* By socket cookie. Sockets leave it by themselves when they are closed. */
struct {
	__uint(type, BPF_MAP_TYPE_SOCKHASH);
	__uint(max_entries, 65536);
	__type(key, u64);
	__type(value, u64);
} splice_socks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct counts);
} splice_counts SEC(".maps");

/* A connection was asked for at a server that takes part: its client may join. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct tuple);
	__type(value, u32);
} asked SEC(".maps");

/* With the sequence numbers that both ends began with a name is one connection's alone, in whatever
 * network namespaces they are: both are random (RFC 6528). */
struct begun {
	struct tuple name;
	u32 client_seq;
	u32 server_seq;
};

/* The client has joined, and waits for its server. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct begun);
	__type(value, struct peer);
} waiting SEC(".maps");

/* Client's cookie to its server. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, u64);
	__type(value, struct peer);
} splice_met SEC(".maps");

/* By socket cookie: what is to be done by `splice_order`. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u64);
	__type(value, struct order_entry);
} splice_orders SEC(".maps");

struct program_name {
	char of[NAME_MAX];
};

enum name_is {
	NAME_REFUSED = 1,
	/* Whatever it asks the kernel. */
	NAME_ALLOWED = 2,
	NAME_IS = NAME_REFUSED | NAME_ALLOWED,
	/* So are names of which it is the beginning, with a version behind it. */
	NAME_ANY_VERSION = 4,
};

/* Programs that do not take part, or do in any case, by the name of their file. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct program_name);
	__type(value, u32);
} splice_refused SEC(".maps");

/* Where such a program listens. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct listener);
	__type(value, u32);
} splice_ports SEC(".maps");

/* Programs of which two threads were seen in calls on one connection, by the name of their file. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct program_name);
	__type(value, struct sharing);
} splice_sharing SEC(".maps");

/* Programs that use such calls, by their files. */
struct file_id {
	u64 device;
	u64 inode;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct file_id);
	__type(value, u32);
} splice_incompatible SEC(".maps");

/* To be said, with a process each. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct incompatible_use);
	__type(value, u32);
} splice_uses SEC(".maps");

/* enum incompatible, by socket cookie. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, u64);
	__type(value, u32);
} splice_incompatible_ends SEC(".maps");

static __always_inline struct counts *counts_here(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&splice_counts, &zero);
}

static __always_inline void count_more(enum count which, u64 more)
{
	struct counts *counts = counts_here();

	if (counts)
		counts->of[which] += more;
}

static __always_inline void count(enum count which)
{
	count_more(which, 1);
}

static __always_inline bool is_port_chosen(u32 port)
{
	if (control.ports_n == 0)
		return true;
	for (u32 n = 0; n < PORTS_MAX; n++) {
		if (n >= control.ports_n)
			return false;
		if (control.ports[n] == port)
			return true;
	}
	return false;
}
