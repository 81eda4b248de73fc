/* The reader is woken by what came, and runs. */
#pragma once
#include "rx.h"

static __always_inline void on_socket(struct cpu_state *cpu, const struct sock *sk)
{
	struct slot *slot = cpu->rx_sk == (u64)sk ? follow(cpu->rx) : NULL;

	cpu->ready_set = 0;
	if (!slot || slot->record.stamps[RX_SOCKET]) {
		cost(cpu, RX_SOCKET, false);
		return;
	}
	stamp(cpu, slot, slot->skb, RX_SOCKET);
	if (config.last_point == RX_SOCKET) {
		end(cpu, slot, cpu->rx);
		return;
	}
	if (slot->record.protocol == PROTOCOL_UDP && config.udp_in_order)
		enqueue(cpu, slot, cpu->rx, (u64)sk, slot->record.rx_cookie, 0);
	cpu->ready = cpu->rx;
	cpu->ready_set = 1;
}

/* A socket wakes its reader before it does anything else: a thread that is woken after another hook was
 * reached on this processor is woken by something else. */
static __always_inline void nobody_woken(struct cpu_state *cpu)
{
	cpu->ready_set = 0;
}

static __always_inline struct woken *woken_of(u32 tid)
{
	u32 at = tid & (WOKEN - 1);

	return bpf_map_lookup_elem(&woken, &at);
}

/* The first thread that is woken after a socket said that it has data. */
static __always_inline void on_waking(struct cpu_state *cpu, const struct task_struct *task)
{
	struct slot *slot;
	struct woken *entry;
	u32 tid = task->pid;

	if (!cpu->ready_set) {
		cost(cpu, RX_WAKING, false);
		return;
	}
	cpu->ready_set = 0;
	slot = follow(cpu->ready);
	entry = woken_of(tid);
	if (!slot || !entry) {
		cost(cpu, RX_WAKING, false);
		return;
	}
	slot->wake_tid = tid;
	entry->tid = tid;
	entry->epoch = cpu->epoch;
	entry->ref = cpu->ready;
	stamp(cpu, slot, slot->skb, RX_WAKING);
}

static __always_inline void on_switch(struct cpu_state *cpu, const struct task_struct *next)
{
	u32 tid = next->pid;
	struct woken *entry = tid ? woken_of(tid) : NULL;
	struct slot *slot;

	nobody_woken(cpu);
	if (!entry || entry->tid != tid || entry->epoch != cpu->epoch) {
		cost(cpu, RX_SCHED_IN, false);
		return;
	}
	entry->tid = 0;
	slot = follow(entry->ref);
	if (!slot || slot->wake_tid != tid || slot->record.stamps[RX_SCHED_IN]) {
		cost(cpu, RX_SCHED_IN, false);
		return;
	}
	stamp(cpu, slot, slot->skb, RX_SCHED_IN);
}
