/* TCP connections of the process that is asked for: their packets without a sender or a reader (SYN, acknowledgements,
 * FIN, RST) belong to it too. */
#pragma once
#include "state.h"

#define PROTOCOL_TCP 6

/* Sized by user space. The least recently used gives way: its next packet with a sender or a reader enters it again. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, u64);
	__type(value, u8);
} connections SEC(".maps");

static __always_inline u64 end_key(const u8 *address, u16 port)
{
	u64 key = *(const u64 *)address * 0x9e3779b97f4a7c15ULL;

	key = (key ^ key >> 32 ^ *(const u64 *)(address + 8)) * 0xbf58476d1ce4e5b9ULL;
	key = (key ^ key >> 29 ^ port) * 0x94d049bb133111ebULL;
	return key ^ key >> 31;
}

/* Of both directions the same. */
static __always_inline u64 connection_key(const struct slice_record *record)
{
	return end_key(record->source, record->source_port) + end_key(record->destination, record->destination_port);
}

static __always_inline bool is_process_asked_for(void)
{
	return config.tgid || config.comm[0];
}

static __always_inline bool same_comm(const u8 *a, const volatile u8 *b)
{
	for (int i = 0; i < 16; i++) {
		if (a[i] != b[i])
			return false;
		if (!a[i])
			break;
	}
	return true;
}

static __always_inline bool is_sent_or_read_by_it(const struct slice_record *record)
{
	if (config.tgid && record->tx_tgid != config.tgid && record->rx_tgid != config.tgid)
		return false;
	if (config.comm[0] && !same_comm(record->tx_comm, config.comm) && !same_comm(record->rx_comm, config.comm))
		return false;
	return true;
}

static __always_inline void enter_connection(const struct slice_record *record)
{
	u64 key = connection_key(record);
	u8 one = 1;

	bpf_map_update_elem(&connections, &key, &one, 0);
}

static __always_inline bool is_of_its_connection(const struct slice_record *record)
{
	u64 key;

	if (record->protocol != PROTOCOL_TCP)
		return false;
	key = connection_key(record);
	return bpf_map_lookup_elem(&connections, &key);
}

/* Asked when a packet's way is over. */
static __always_inline bool is_wanted(const struct slice_record *record)
{
	if (!is_sent_or_read_by_it(record))
		return is_of_its_connection(record);
	if (record->protocol == PROTOCOL_TCP && !is_of_its_connection(record))
		enter_connection(record);
	return true;
}

/* The first SYN of a connection is sent in its caller's connect(2). Ports and addresses may have been another
 * process's before. */
static __always_inline void on_connect(struct slice_record *record)
{
	const struct task_struct *task = bpf_get_current_task_btf();
	u64 key;

	record->tx_tgid = task->tgid;
	__builtin_memcpy(record->tx_comm, task->comm, 16);
	if (!is_process_asked_for())
		return;
	if (is_sent_or_read_by_it(record)) {
		enter_connection(record);
		return;
	}
	key = connection_key(record);
	bpf_map_delete_elem(&connections, &key);
}
