/* The place of the compiled pcap-filter expression. Before loading, user space overwrites the block that
 * begins with the marker with the translated program, or leaves it out of the loaded one by
 * `config.has_filter`. Calling convention: hopscope_slice::filter. */
#pragma once
#include "state.h"

/* hopscope_slice::load::object */
#define FILTER_INSNS 1024

/* `room`: the packet's first bytes, and behind them the expression's own memory. `is_cut`: only a byte that
 * was not copied would have told. */
static __always_inline bool filter(struct filter_room *room, u32 captured, u32 wire_len, bool *is_cut)
{
	register u64 result asm("r0");
	register u64 r1 asm("r1") = (u64)room;
	register u64 r2 asm("r2") = captured;
	register u64 r3 asm("r3") = wire_len;

	asm volatile("r0 = 0x5f3759df\n"
		     "r0 = 0x0badf00d\n"
		     ".rept %[fill]\n"
		     "goto +0\n"
		     ".endr\n"
		     : "=r"(result), "+r"(r1), "+r"(r2), "+r"(r3)
		     : [fill] "i"(FILTER_INSNS - 2)
		     : "r4", "r5", "memory");
	*is_cut = r1;
	return result;
}

/* A program may be interrupted by another on its processor, and preempted: whoever finds a free room has it. */
static __always_inline struct filter_room *take_room(struct cpu_state *cpu, u32 *taken)
{
	for (u32 i = 0; i < FILTER_ROOMS; i++) {
		*taken = 1u << i;
		if (!(__sync_fetch_and_or(&cpu->rooms_taken, *taken) & *taken))
			return &cpu->rooms[i];
	}
	return NULL;
}

static __always_inline void give_room(struct cpu_state *cpu, u32 taken)
{
	__sync_fetch_and_and(&cpu->rooms_taken, ~taken);
}
