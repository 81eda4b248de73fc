/* Maps and counters of the echo server's programs. */
#pragma once

volatile const struct echo_config config;

/* By socket cookie, which no other socket ever has: a 4-tuple may come again while an old one lives. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, __u64);
	__type(value, struct echo_connection);
} connections SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_SOCKHASH);
	__uint(max_entries, 65536);
	__type(key, __u64);
	__type(value, __u64);
} servers SEC(".maps");

/* No program runs on these: what is delivered to them is read by their owners. */
struct {
	__uint(type, BPF_MAP_TYPE_SOCKHASH);
	__uint(max_entries, 65536);
	__type(key, __u64);
	__type(value, __u64);
} clients SEC(".maps");

/* From a client's establishment to its first bytes. The oldest may go: its bytes take the way by TCP. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, struct echo_tuple);
	__type(value, struct echo_client);
} by_tuple SEC(".maps");

/* Addresses of the server's namespace, where it listens on all of them. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, __u32[4]);
	__type(value, __u32);
} addresses SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} events SEC(".maps");

struct echo_counts {
	__u64 of[ECHO_COUNTERS];
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct echo_counts);
} counts SEC(".maps");

static __always_inline void count(enum echo_counter what, __u64 n)
{
	__u32 zero = 0;
	struct echo_counts *all = bpf_map_lookup_elem(&counts, &zero);
	if (all)
		all->of[what] += n;
}
