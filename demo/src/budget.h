/* How many packets the run may still take, shared by the workers. */
#ifndef DEMO_BUDGET_H
#define DEMO_BUDGET_H

#include <stdatomic.h>
#include <stdint.h>

struct budget {
	uint64_t limit;
	_Atomic uint64_t claimed;
	_Atomic uint64_t finished;
};

/* Claims up to `wanted` numbers from *first on; 0 when all are claimed. */
static inline uint32_t budget_claim(struct budget *budget, uint32_t wanted, uint64_t *first)
{
	uint64_t claimed = atomic_load_explicit(&budget->claimed, memory_order_relaxed);
	uint64_t granted;
	do {
		uint64_t left = budget->limit - claimed;
		granted = left < wanted ? left : wanted;
		if (granted == 0)
			return 0;
	} while (!atomic_compare_exchange_weak_explicit(&budget->claimed, &claimed, claimed + granted,
							memory_order_relaxed, memory_order_relaxed));
	*first = claimed;
	return (uint32_t)granted;
}

static inline void budget_return(struct budget *budget, uint32_t unused)
{
	if (unused)
		atomic_fetch_sub_explicit(&budget->claimed, unused, memory_order_relaxed);
}

/* Says whether these were the last. */
static inline int budget_finish(struct budget *budget, uint32_t count)
{
	return atomic_fetch_add_explicit(&budget->finished, count, memory_order_relaxed) + count == budget->limit;
}

#endif
