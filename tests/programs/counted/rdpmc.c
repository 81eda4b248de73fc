/* Preloaded where no counter of the processor is: answers `rdpmc`. Each reading of a counter adds to it what a probe would
 * count of itself; the program adds the rest with counted_add. Each thread counts for itself. */
#define _GNU_SOURCE
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

#define COUNTERS 4
#define WIDTH 48

static const uint64_t of_a_reading[COUNTERS] = { 7, 11, 13, 0 };
/* The second wraps soon. */
static __thread uint64_t counts[COUNTERS] = { 1, (1ull << WIDTH) - 5000, 3, 4 };

/* Called once, by the next reading, which is of no counter then. */
void (*volatile counted_meanwhile)(void);

void counted_add(unsigned counter, uint64_t n) { counts[counter] += n; }

static void answer(int number, siginfo_t *info, void *at)
{
	greg_t *regs = ((ucontext_t *)at)->uc_mcontext.gregs;
	const uint8_t *code = (const uint8_t *)regs[REG_RIP];
	unsigned counter = (unsigned)regs[REG_RCX];
	uint64_t now;
	(void)info;
	if (code[0] != 0x0f || code[1] != 0x33 || counter >= COUNTERS) {
		signal(number, SIG_DFL);
		return;
	}
	if (counted_meanwhile) {
		counted_meanwhile();
		counted_meanwhile = NULL;
		regs[REG_RAX] = regs[REG_RDX] = 0;
		regs[REG_RIP] += 2;
		return;
	}
	counts[counter] += of_a_reading[counter];
	now = counts[counter] & ((1ull << WIDTH) - 1);
	regs[REG_RAX] = (greg_t)(now & 0xffffffff);
	regs[REG_RDX] = (greg_t)(now >> 32);
	regs[REG_RIP] += 2;
}

__attribute__((constructor)) static void begin(void)
{
	struct sigaction action = { .sa_sigaction = answer, .sa_flags = SA_SIGINFO | SA_NODEFER };
	sigaction(SIGSEGV, &action, NULL);
}
