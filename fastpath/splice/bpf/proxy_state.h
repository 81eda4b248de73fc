/* Maps and counters of the proxy's programs. User space sets their sizes. */
#pragma once

volatile const struct proxy_config config;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, __u64);
	__type(value, struct proxy_way);
} proxy_ways SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, __u64);
	__type(value, struct proxy_progress);
} proxy_progress SEC(".maps");

/* Sockets that bytes can be handed to. No program runs on them because of this map. */
struct {
	__uint(type, BPF_MAP_TYPE_SOCKHASH);
	__uint(max_entries, 65536);
	__type(key, __u64);
	__type(value, __u64);
} proxy_targets SEC(".maps");

/* Sockets whose arriving bytes the verdict sees: a second map, since a socket may be able to take
 * part in one direction only. */
struct {
	__uint(type, BPF_MAP_TYPE_SOCKHASH);
	__uint(max_entries, 65536);
	__type(key, __u64);
	__type(value, __u64);
} proxy_arriving SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 << 20);
} proxy_events SEC(".maps");

struct proxy_counts {
	__u64 of[PROXY_COUNTERS];
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct proxy_counts);
} proxy_counts SEC(".maps");

static __always_inline void count(enum proxy_counter what, __u64 n)
{
	__u32 zero = 0;
	struct proxy_counts *all = bpf_map_lookup_elem(&proxy_counts, &zero);
	if (all)
		all->of[what] += n;
}
