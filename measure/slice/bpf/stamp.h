/* Finding a packet's slot, believing it, and stamping. */
#pragma once
#include "state.h"

extern void *bpf_rdonly_cast(const void *obj__ign, __u32 btf_id__k) __ksym __weak;

/* Eight bytes of kernel memory. Loads through a cast pointer cost a nanosecond; where the kernel has
 * no such cast (before 6.2), a helper reads them. An unreadable address gives 0. */
static __always_inline u64 peek8(const void *address)
{
	u64 value = 0;

	if (bpf_ksym_exists(bpf_rdonly_cast)) {
		struct timespec64 *at = bpf_rdonly_cast(address, bpf_core_type_id_kernel(struct timespec64));
		return at->tv_sec;
	}
	bpf_probe_read_kernel(&value, sizeof(value), address);
	return value;
}

#define CAST(type, word) ((const struct type *)bpf_rdonly_cast((void *)(word), bpf_core_type_id_kernel(struct type)))

/* A pointer to a structure, out of a structure. Of each such load the verifier (Linux 6.3) looks for a type by name four
 * times among all of the kernel's, which takes a millisecond, unless the pointer is of a cast. */
#define POINTER(type, from, member)                                                        \
	(bpf_ksym_exists(bpf_rdonly_cast) ? CAST(type, peek8(&(from)->member)) :           \
					    (const struct type *)(from)->member)

static __always_inline const struct sock *sock_of(const struct sk_buff *skb)
{
	return POINTER(sock, skb, sk);
}

static __always_inline const struct net_device *device_of(const struct sk_buff *skb)
{
	return POINTER(net_device, skb, dev);
}

static __always_inline u64 head_of(const struct sk_buff *skb)
{
	return peek8(&skb->head);
}

static __always_inline u64 data_of(const struct sk_buff *skb)
{
	return peek8(&skb->data);
}

static __always_inline u64 now(void)
{
	if (config.is_event) {
		struct bpf_perf_event_value value = {};
		bpf_perf_event_read_value(&events, BPF_F_CURRENT_CPU, &value, sizeof(value));
		return value.counter;
	}
	return bpf_ktime_get_ns();
}

static __always_inline void cost(struct cpu_state *cpu, enum point point, bool stamped)
{
	cpu->counters[HITS]++;
	cpu->cost += stamped ? control.hit_ns[point] : control.miss_ns[point];
}

/* What a hook without a slot keeps for a later one. */
static __always_inline void moment_now(struct cpu_state *cpu, struct moment *moment, enum point point)
{
	moment->value = now();
	moment->cpu = bpf_get_smp_processor_id();
	cost(cpu, point, true);
	moment->cost = cpu->cost;
}

static __always_inline struct slot *slot_at(u32 index)
{
	return bpf_map_lookup_elem(&slots, &index);
}

static __always_inline struct bucket *bucket_at(u32 slot)
{
	u32 at = slot / WAYS;

	return bpf_map_lookup_elem(&buckets, &at);
}

static __always_inline u32 first_way(u64 head)
{
	return hash64(head) & config.slot_mask & ~(WAYS - 1);
}

/* `ref`: which packet it is; after its end nobody else is taken for it. */
static __always_inline struct slot *find(u64 head, struct ref *ref)
{
	u32 at = first_way(head);
	struct bucket *bucket = bucket_at(at);
	struct slot *slot;

	ref->slot = at;
	ref->gen = ENDING;
	if (!bucket)
		return NULL;
	if (bucket->heads[0] == head)
		ref->slot = at;
	else if (bucket->heads[1] == head)
		ref->slot = at | 1;
	else if (bucket->heads[2] == head)
		ref->slot = at | 2;
	else if (bucket->heads[3] == head)
		ref->slot = at | 3;
	else
		return NULL;
	slot = slot_at(ref->slot);
	if (!slot)
		return NULL;
	ref->gen = *(volatile u32 *)&slot->gen;
	return *(volatile u64 *)&slot->head == head && !(ref->gen & ENDING) ? slot : NULL;
}

/* The buffer is another packet's from now on, or free; the slot stays, unless its packet is just ending. */
static __always_inline void orphan(u64 head, u32 index)
{
	struct bucket *bucket = bucket_at(index);

	if (bucket)
		__sync_val_compare_and_swap(&bucket->heads[index & (WAYS - 1)], head, ORPHAN);
}

static __always_inline struct slot *follow(struct ref ref)
{
	struct slot *slot = slot_at(ref.slot);

	return slot && slot->gen == ref.gen && slot->head ? slot : NULL;
}

/* Whether the buffer still holds the slot's packet: its flow, sequence number, length and IP
 * identification. */
static __always_inline bool is_same(const struct slot *slot, u64 head)
{
	u64 id4 = peek8((void *)(head + slot->off4)) & slot->mask4;
	u64 id3 = peek8((void *)(head + slot->off3)) & slot->mask3;

	return id4 == slot->id4 && id3 == slot->id3;
}

/* The packet's slot, if there is one and it is this packet's. */
static __always_inline struct slot *find_same(struct cpu_state *cpu, u64 head, struct ref *ref)
{
	struct slot *slot = find(head, ref);

	if (!slot)
		return NULL;
	if (!is_same(slot, head)) {
		count(cpu, STALE_REFUSED);
		return NULL;
	}
	return slot;
}

/* Whether the packet has left its buffer, which may hold another: one that looks the same when the same bytes
 * are sent again, as IPv6's packets have no number. A socket has it, or GRO merged it. */
static __always_inline bool has_left(const struct slot *slot)
{
	return slot->is_kept || slot->last_point >= RX_IP;
}

static __always_inline u64 stamp_word(struct slot *slot, u64 value, u64 cost, u32 on)
{
	u64 delta = value - slot->base;
	u64 inner = cost - slot->last_cost;

	if (delta > 0xffffffff)
		delta = 0xffffffff;
	if (inner > INNER_OTHER_CPU - 1)
		inner = INNER_OVER;
	if (slot->last_cpu != on)
		inner = INNER_OTHER_CPU;
	return delta | inner << 32 | (u64)(on + 1) << 48;
}

static __always_inline void stamp(struct cpu_state *cpu, struct slot *slot, u64 skb, enum point point)
{
	u64 value = now();
	u32 on = bpf_get_smp_processor_id();
	u64 word;

	/* Each processor counts its own events: of what lies between two, nothing is known. */
	if (config.is_event && slot->last_cpu != on)
		slot->base = value - slot->last_delta;
	word = stamp_word(slot, value, cpu->cost, on);
	if (config.is_event)
		slot->last_delta = (u32)word;
	if (slot->last_cpu != on) {
		slot->record.flags |= F_CROSS_CPU;
		cpu->counters[CROSS_CPU]++;
	}
	slot->record.stamps[point] = word;
	slot->last_cpu = on;
	slot->last_point = point;
	slot->skb = skb;
	if (!config.is_event)
		slot->last_ns = value;
	cost(cpu, point, true);
	slot->last_cost = cpu->cost;
}

/* A packet that meets a sending point again is on its way through a second device: its first stands. */
static __always_inline void stamp_first(struct cpu_state *cpu, struct slot *slot, u64 skb, enum point point)
{
	if (slot->record.stamps[point]) {
		slot->record.flags |= F_FORWARDED;
		slot->last_point = point;
		slot->skb = skb;
		cost(cpu, point, false);
		return;
	}
	stamp(cpu, slot, skb, point);
}
