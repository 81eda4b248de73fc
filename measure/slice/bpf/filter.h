/* The place of the compiled pcap-filter expression. Before loading, user space overwrites the block
 * between the marker and its end with the translated program, or leaves it out of the loaded program
 * by `config.has_filter`. Calling convention: hopscope_slice::filter. */
#pragma once
#include "kernel.h"

#define FILTER_INSNS 1024

/* The expression's scratch memory lies in the 64 bytes at the very end of the stack, which the
 * compiler's own use of it must not reach: user space checks. */
static __always_inline u32 filter(const u8 *packet, u32 captured, u32 wire_len)
{
	register u64 result asm("r0");
	register const u8 *r1 asm("r1") = packet;
	register u64 r2 asm("r2") = captured;
	register u64 r3 asm("r3") = wire_len;

	asm volatile("r0 = 0x5f3759df\n"
		     "r0 = 0x0badf00d\n"
		     ".rept %[fill]\n"
		     "r0 = 1\n"
		     ".endr\n"
		     : "=r"(result), "+r"(r1), "+r"(r2), "+r"(r3)
		     : [fill] "i"(FILTER_INSNS - 2)
		     : "r4", "r5", "memory");
	return result;
}
