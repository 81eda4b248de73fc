/* A sum of a stream's bytes that does not depend on the pieces in which they came: over whole words of
 * eight bytes, each step of it reversible, so that no single changed word leaves it as it was. */
#pragma once
#include "state.h"

#define CHUNK 4096
/* UIO_MAXIOV of include/uapi/linux/uio.h */
#define PIECES_MAX 1024
/* Of one call: what it costs holds up the caller. */
#define CALL_BYTES_MAX (256ULL << 20)

/* struct iovec (readv(2)) */
struct piece {
	u64 at;
	u64 bytes;
};

/* Of one call, while it is looked at: no other one of this processor is meanwhile. In a map, since the
 * verifier would follow what it knows of a stack's numbers through every turn of a loop. */
struct scratch {
	u64 word[CHUNK / 8 + 2];
	u64 sum;
	u64 rest;
	u64 bytes;
	/* Still to come, in all and of this piece. */
	u64 left;
	struct piece piece;
	/* Where the next piece is described. */
	u64 next;
	u64 has_failed;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct scratch);
} scratch SEC(".maps");

/* A global function: the verifier looks at its loop once, and not again for whatever comes before. */
__noinline u64 sum_of(u64 sum, u32 words)
{
	u32 zero = 0;
	struct scratch *here = bpf_map_lookup_elem(&scratch, &zero);

	if (!here)
		return sum;
	for (u32 at = 0; at < CHUNK / 8 + 1; at++) {
		if (at >= words)
			break;
		sum = (sum ^ here->word[at]) * 0x9e3779b97f4a7c15ULL;
		sum ^= sum >> 32;
	}
	return sum;
}

static long walk_on(u32 n, void *none)
{
	u32 zero = 0, offset, words;
	struct scratch *walk = bpf_map_lookup_elem(&scratch, &zero);
	u64 take;

	if (!walk || walk->left == 0)
		return 1;
	if (walk->piece.bytes == 0) {
		if (bpf_probe_read_user(&walk->piece, sizeof(walk->piece), (void *)walk->next)) {
			walk->has_failed = 1;
			return 1;
		}
		walk->next += sizeof(walk->piece);
		return 0;
	}
	take = walk->left;
	if (take > walk->piece.bytes)
		take = walk->piece.bytes;
	if (take > CHUNK)
		take = CHUNK;
	offset = walk->bytes & 7;
	walk->word[0] = walk->rest;
	if (bpf_probe_read_user((u8 *)walk->word + offset, take, (void *)walk->piece.at)) {
		walk->has_failed = 1;
		return 1;
	}
	words = (offset + take) / 8;
	walk->sum = sum_of(walk->sum, words);
	offset = (offset + take) & 7;
	walk->rest = 0;
	if (offset && words < CHUNK / 8 + 2)
		walk->rest = walk->word[words] & ((1ULL << (8 * offset)) - 1);
	walk->bytes += take;
	walk->left -= take;
	walk->piece.at += take;
	walk->piece.bytes -= take;
	return 0;
}

/* Adds `bytes` that a call has sent or received. `pieces`: where struct iovecs are; 0: all is at `at`. */
static __always_inline void add_to(struct way *way, u64 at, u64 pieces, u64 bytes)
{
	u32 zero = 0;
	struct scratch *walk = bpf_map_lookup_elem(&scratch, &zero);

	if (!walk || way->doubts & DOUBT_UNREADABLE || bytes > CALL_BYTES_MAX) {
		way->doubts |= DOUBT_UNREADABLE;
		way->bytes += bytes;
		return;
	}
	walk->sum = way->sum;
	walk->rest = way->rest;
	walk->bytes = way->bytes;
	walk->left = bytes;
	walk->piece.at = at;
	walk->piece.bytes = pieces ? 0 : bytes;
	walk->next = pieces;
	walk->has_failed = 0;
	bpf_loop(2 * PIECES_MAX + CALL_BYTES_MAX / CHUNK + 2, walk_on, NULL, 0);
	if (walk->has_failed || walk->left)
		way->doubts |= DOUBT_UNREADABLE;
	way->sum = walk->sum;
	way->rest = walk->rest;
	/* Counted even where it could not be read. */
	way->bytes = walk->bytes + walk->left;
}
