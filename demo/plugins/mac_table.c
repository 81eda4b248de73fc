#include "mac_table.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "../src/module.h"

#define BUCKETS 1024
#define WAYS 4

/* One cache line. Readers never write: they take the sequence before and after, and try again
 * when a writer (odd sequence) was in between. */
struct bucket {
	_Atomic uint32_t sequence;
	_Atomic uint8_t port[WAYS];
	_Atomic uint32_t seen_s[WAYS];
	_Atomic uint64_t key[WAYS]; /* 0: empty */
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct bucket) == 64, "a bucket is one cache line");

struct mac_table {
	struct bucket buckets[BUCKETS];
	uint64_t age_s;
};

struct found {
	int way;      /* -1: none */
	uint8_t port;
	uint32_t seen_s;
};

static struct bucket *bucket_of(const struct mac_table *table, uint64_t key)
{
	return (struct bucket *)&table->buckets[key * 0x9e3779b97f4a7c15u >> 54];
}

static struct found search(struct bucket *bucket, uint64_t key)
{
	struct found found;
	uint32_t before, after;
	do {
		while ((before = atomic_load_explicit(&bucket->sequence, memory_order_acquire)) & 1)
			__builtin_ia32_pause();
		found = (struct found){ .way = -1 };
		for (int way = 0; way < WAYS; way++) {
			if (atomic_load_explicit(&bucket->key[way], memory_order_relaxed) != key)
				continue;
			found.way = way;
			found.port = atomic_load_explicit(&bucket->port[way], memory_order_relaxed);
			found.seen_s = atomic_load_explicit(&bucket->seen_s[way], memory_order_relaxed);
			break;
		}
		atomic_thread_fence(memory_order_acquire);
		after = atomic_load_explicit(&bucket->sequence, memory_order_relaxed);
	} while (before != after);
	return found;
}

static uint32_t lock(struct bucket *bucket)
{
	uint32_t even;
	do {
		while ((even = atomic_load_explicit(&bucket->sequence, memory_order_relaxed)) & 1)
			__builtin_ia32_pause();
	} while (!atomic_compare_exchange_weak_explicit(&bucket->sequence, &even, even + 1, memory_order_acquire,
							memory_order_relaxed));
	/* The stores that follow must not be seen before the odd sequence. */
	atomic_thread_fence(memory_order_release);
	return even;
}

static void write_entry(struct bucket *bucket, uint64_t key, uint8_t port, uint32_t now_s)
{
	uint32_t even = lock(bucket);
	int chosen = 0;
	for (int way = 0; way < WAYS; way++) {
		uint64_t held = atomic_load_explicit(&bucket->key[way], memory_order_relaxed);
		if (held == key) {
			chosen = way;
			break;
		}
		/* Else the longest silent one; an empty way was never seen, so it goes first. */
		if (atomic_load_explicit(&bucket->seen_s[way], memory_order_relaxed) <
		    atomic_load_explicit(&bucket->seen_s[chosen], memory_order_relaxed))
			chosen = way;
	}
	atomic_store_explicit(&bucket->key[chosen], key, memory_order_relaxed);
	atomic_store_explicit(&bucket->port[chosen], port, memory_order_relaxed);
	atomic_store_explicit(&bucket->seen_s[chosen], now_s, memory_order_relaxed);
	atomic_store_explicit(&bucket->sequence, even + 2, memory_order_release);
}

HELPER void mac_table_learn(struct mac_table *table, uint64_t key, uint8_t port, uint64_t now_s)
{
	struct bucket *bucket = bucket_of(table, key);
	struct found found = search(bucket, key);
	/* Known addresses cost a write once a second, not once a packet: the line stays shared. */
	if (found.way < 0 || found.port != port || found.seen_s != (uint32_t)now_s)
		write_entry(bucket, key, port, (uint32_t)now_s);
}

HELPER int mac_table_find(const struct mac_table *table, uint64_t key, uint64_t now_s)
{
	struct found found = search(bucket_of(table, key), key);
	/* Signed: another worker's second may have begun before ours. */
	if (found.way < 0 || (int64_t)now_s - (int64_t)found.seen_s > (int64_t)table->age_s)
		return MAC_PORT_UNKNOWN;
	return found.port;
}

struct mac_table *mac_table_new(uint64_t age_s)
{
	struct mac_table *table = aligned_alloc(64, sizeof *table);
	if (!table)
		return NULL;
	*table = (struct mac_table){ .age_s = age_s };
	return table;
}

void mac_table_free(struct mac_table *table)
{
	free(table);
}
