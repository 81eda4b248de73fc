/* Ends to which TCP's bytes come in the queue of redirected ones (gather.h), by socket cookie. */
#pragma once
#include <kernel.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_SOCKHASH);
	__uint(max_entries, 4096);
	__type(key, u64);
	__type(value, u64);
} splice_gathered SEC(".maps");
