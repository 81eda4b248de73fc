/* What a firewall remembers of its flows: a working set as large as wanted. Flows that hash alike share a
 * record, and workers may update one at the same time: the numbers are nobody's. */
#ifndef DEMO_SESSIONS_H
#define DEMO_SESSIONS_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "../src/rules.h"

enum { SESSIONS = 1024, LINE_WORDS = 8 };

struct sessions {
	_Atomic uint64_t *records;
	uint64_t lines; /* of a record, a power of two; 0: none are kept */
};

static inline int sessions_open(struct sessions *sessions, uint64_t bytes)
{
	*sessions = (struct sessions){ 0 };
	if (bytes == 0)
		return 0;
	for (sessions->lines = 1; sessions->lines * LINE_WORDS * sizeof(uint64_t) < bytes;)
		sessions->lines *= 2;
	sessions->records = calloc(SESSIONS * sessions->lines, LINE_WORDS * sizeof *sessions->records);
	return sessions->records ? 0 : -1;
}

static inline void sessions_close(struct sessions *sessions)
{
	free(sessions->records);
	*sessions = (struct sessions){ 0 };
}

static inline void sessions_update(struct sessions *sessions, const struct five_tuple *flow, uint64_t length)
{
	if (sessions->lines == 0)
		return;
	uint64_t key = ((uint64_t)flow->source << 32 | flow->destination) ^
		       ((uint64_t)flow->source_port << 24 | (uint64_t)flow->destination_port << 8 | flow->protocol);
	uint64_t slot = (key * 0x9e3779b97f4a7c15u) >> 32 & (SESSIONS - 1);
	_Atomic uint64_t *record = &sessions->records[slot * sessions->lines * LINE_WORDS];
	/* A word of each line, and each once, but in an order that the processor does not foresee: what it costs is
	 * the lines that are in no cache. */
	for (uint64_t i = 0; i < sessions->lines; i++) {
		uint64_t line = i * 0x9e3779b1u & (sessions->lines - 1);
		_Atomic uint64_t *word = &record[line * LINE_WORDS];
		atomic_store_explicit(word, atomic_load_explicit(word, memory_order_relaxed) + length,
				      memory_order_relaxed);
	}
}

#endif
