/* What is attached only while constants are measured: stamps of no point of a packet's way, all at one hook,
 * so that what lies between two of them is nothing. */
#pragma once
#include "rx.h"

/* Behind the last point of enum point. */
#define EMPTY_FIRST 20

static __always_inline void on_empty(struct cpu_state *cpu, const struct sk_buff *skb, enum point point)
{
	struct ref ref;
	struct slot *slot = find_same(cpu, head_of(skb), &ref);
	enum point last;

	if (!slot) {
		cost(cpu, point, false);
		return;
	}
	/* No point of the packet's way: it is where it was. */
	last = slot->last_point;
	stamp_first(cpu, slot, (u64)skb, point);
	slot->last_point = last;
}

#define EMPTY(n)                                                           \
	SEC("tp_btf/net_dev_queue")                                        \
	int BPF_PROG(empty_##n, struct sk_buff *skb)                       \
	{                                                                  \
		ENTER                                                      \
		on_empty(cpu, skb, (enum point)(EMPTY_FIRST + n));         \
		return 0;                                                  \
	}

EMPTY(0)
EMPTY(1)
EMPTY(2)
EMPTY(3)

/* The least that a measuring program can do. */
#define CLOCK_ONLY(n)                                                      \
	SEC("tp_btf/net_dev_queue")                                        \
	int BPF_PROG(clock_only_##n, struct sk_buff *skb)                  \
	{                                                                  \
		struct cpu_state *cpu = this_cpu();                        \
									   \
		if (cpu)                                                   \
			cpu->clock_only = bpf_ktime_get_ns();              \
		return 0;                                                  \
	}

CLOCK_ONLY(0)
CLOCK_ONLY(1)
CLOCK_ONLY(2)
CLOCK_ONLY(3)
