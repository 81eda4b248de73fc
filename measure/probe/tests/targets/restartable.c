/* Spins inside a restartable sequence. Prints its first address, its length and its abort address. */
#include <stdio.h>
#include <sys/rseq.h>

int main(void) {
	struct rseq *area = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
	unsigned long first, behind, abort_at;
	if (__rseq_size == 0)
		return 3;
	__asm__("lea 1f(%%rip), %0\n\tlea 2f(%%rip), %1\n\tlea 3f(%%rip), %2" : "=r"(first), "=r"(behind), "=r"(abort_at));
	printf("%lx %lx %lx\n", first, behind - first, abort_at);
	fflush(stdout);
	/* struct rseq_cs, and the signature that must stand before the abort handler. */
	__asm__ volatile(".pushsection .data.rel, \"aw\"\n\t.balign 32\n4:\n\t.long 0, 0\n\t.quad 1f, 2f - 1f, 3f\n\t.popsection\n"
		"0:\n\tlea 4b(%%rip), %%rax\n\tmov %%rax, %0\n"
		"1:\n\tpause\n\tjmp 1b\n2:\n\t"
		".byte 0x0f, 0xb9, 0x3d\n\t.long 0x53053053\n"
		"3:\n\tjmp 0b\n" : "=m"(area->rseq_cs) : : "rax", "memory");
	return 0;
}
