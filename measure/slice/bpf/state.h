/* What is kept between hooks. Everything is preallocated and indexed by a hash; whatever finds no
 * place is counted and not traced, never waited for. */
#pragma once
#include "contract.h"

#define SLOTS_DEFAULT 4096

const volatile struct slice_config config = {};
struct slice_control control = {};

/* A moment: the clock (or event counter), and the probe cost of this processor up to then. */
struct moment {
	u64 value;
	u64 cost;
	u32 cpu;
	u32 reserved;
};

/* Who holds a slot although the packet's way is over. */
#define IN_DRIVER 1u
#define ENDED 2u

struct ref {
	u32 slot;
	u32 gen;
};
#define ENDING 1u
#define NO_POINT 0xff

/* A packet under way. Found by the address of its buffer, believed by its headers. */
struct slot {
	u64 head;        /* 0: free */
	u64 skb;         /* at its last stamp */
	u64 id3, mask3;  /* first eight bytes of the network header, of which those that stay */
	u64 id4, mask4;  /* and of the transport header */
	u64 base;        /* value of the first stamp */
	u64 last_ns;
	u64 last_cost;
	u32 last_cpu;
	u32 gen;         /* of its packets; odd while one is being ended */
	u32 end_seq;     /* of TCP data */
	u32 cover_end;   /* end of what was merged into it */
	u16 off3, off4;  /* of the headers from head */
	u32 state;
	u32 wake_tid;
	u32 last_point;
	u8 is_kept;      /* its buffer may be gone, as GRO and TCP merge packets: it is found by reference */
	u8 precopy_point; /* last_point, last_cpu and last_cost before the stamp of the copy; NO_POINT: none */
	u16 precopy_cpu;
	u32 last_delta;
	struct ref merged; /* the next of those that GRO merged into one */
	u64 precopy_cost;
	struct slice_record record;
} __attribute__((aligned(64)));

/* Buffers of packets under way: the number of a place here is that of the slot. Four in half a cache line,
 * so that a packet that is not followed costs one look. */
#define WAYS 4
/* In place of an address: the buffer is gone, the packet's data are not. */
#define ORPHAN 1
struct bucket {
	u64 heads[WAYS];
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SLOTS_DEFAULT / WAYS);
	__type(key, u32);
	__type(value, struct bucket);
} buckets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SLOTS_DEFAULT);
	__type(key, u32);
	__type(value, struct slot);
} slots SEC(".maps");

/* Buffers of packets without a slot (unplaced.h). */
#define UNPLACED 4096
struct unplaced {
	u64 heads[WAYS];
	u64 next;
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, UNPLACED);
	__type(key, u32);
	__type(value, struct unplaced);
} unplaced SEC(".maps");

#define XMIT_DEPTH 4
#define GRO_KEPT 64
struct xmit {
	u64 skb;
	struct ref ref;
};
/* What a filter looks at, and 64 bytes for itself. */
#define FILTER_REACH 256
#define FILTER_ROOMS 4
struct filter_room {
	u8 packet[FILTER_REACH];
	u8 scratch[64];
};
struct cpu_state {
	/* These three are read by user space: hopscope_slice::load::counts. */
	u64 cost;
	u64 next_id;
	u64 counters[COUNTERS_MAX];
	u64 clock_only;
	u32 epoch;
	u32 epoch_reserved;
	u64 rx_sk;            /* socket of the packet that this processor last received, */
	struct ref rx;        /* and its slot */
	struct ref ready;     /* whose arrival is being told to a reader */
	u32 ready_set;
	u32 xmit_depth;
	struct xmit xmit[XMIT_DEPTH];
	u32 gro_head;
	u32 gro_reserved;
	struct ref gro[GRO_KEPT];
	u32 rooms_taken;
	u32 rooms_reserved;
	struct filter_room rooms[FILTER_ROOMS];
};
_Static_assert(__builtin_offsetof(struct cpu_state, counters) == 16, "contract");
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cpu_state);
} cpus SEC(".maps");

/* What a thread is doing in the kernel. */
#define CALLS 4096
#define DONE_KEPT 64
struct call {
	u32 tid;
	u32 nr;
	u32 fd;
	u32 epoch;
	struct moment enter;
	struct moment transport; /* UDP was given data for udp_sk */
	u64 udp_sk;
	struct moment copy;      /* the last copy that began */
	struct ref copying;      /* and its packet */
	u32 copied_seq;
	u32 done_count;
	struct ref done[DONE_KEPT];
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CALLS);
	__type(key, u32);
	__type(value, struct call);
} calls SEC(".maps");

/* The last sends of a socket: whose data are between which sequence numbers. */
#define SOCKETS 2048
#define SENDS 4
struct send {
	u32 first_seq, end_seq;
	u32 tid, tgid;
	struct moment enter;      /* value 0: not known */
	struct moment transport;
	u8 comm[16];
};
struct sender {
	u64 sk;
	u32 count;
	u32 reserved;
	struct send sends[SENDS];
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SOCKETS);
	__type(key, u32);
	__type(value, struct sender);
} senders SEC(".maps");

/* Packets in a socket's receive queue, in the order of arrival. Changed under the socket's lock. */
#define QUEUE 128
struct receiver {
	u64 sk;
	u64 cookie;
	u32 head, tail;
	u32 is_unsorted;
	u32 is_ambiguous;
	u32 last_cpu;
	u32 epoch;
	u32 ports;        /* of TCP both, of UDP the socket's */
	u32 reserved;
	struct {
		struct ref ref;
		u32 end_seq;
		u32 seq;  /* of UDP its place: how many came before */
	} queue[QUEUE];
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, SOCKETS);
	__type(key, u32);
	__type(value, struct receiver);
} receivers SEC(".maps");

/* Threads being woken by a packet. */
#define WOKEN 1024
struct woken {
	u32 tid;
	u32 epoch;
	struct ref ref;
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WOKEN);
	__type(key, u32);
	__type(value, struct woken);
} woken SEC(".maps");

/* Packets that software GSO may cut: the last of a flow, as a queueing discipline may hold many. */
#define PARENTS 1024
#define PARENTS_OF_FLOW 32
struct parent {
	struct ref ref;
	u64 sk;
	u32 seq, end_seq;
};
struct flow_parents {
	u64 key;          /* ports, mixed with addresses */
	u64 next;
	struct parent kept[PARENTS_OF_FLOW];
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PARENTS);
	__type(key, u32);
	__type(value, struct flow_parents);
} parents SEC(".maps");

/* Packets' bytes, by slot; one entry when none are kept. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct slice_bytes);
} bytes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16 << 20);
} ring SEC(".maps");

static __always_inline struct cpu_state *this_cpu(void)
{
	u32 zero = 0;
	return bpf_map_lookup_elem(&cpus, &zero);
}

/* What was not seen to its end, while hooks were off, is not taken up again when they are on: it went
 * another way meanwhile. Calls, queues and threads being woken are of one epoch. */
static __always_inline bool is_on(struct cpu_state *cpu)
{
	u32 epoch = *(volatile u32 *)&control.enabled;

	if (!cpu || (epoch & ON) != ON)
		return false;
	if (cpu->epoch != epoch) {
		cpu->epoch = epoch;
		cpu->rx_sk = 0;
		cpu->ready_set = 0;
		cpu->xmit_depth = 0;
	}
	return true;
}

/* Counts that must add up: a softirq may come between reading and writing. */
static __always_inline void count(struct cpu_state *cpu, enum counter counter)
{
	__sync_fetch_and_add(&cpu->counters[counter], 1);
}

static __always_inline bool has(enum point point)
{
	return config.points & (1u << point);
}

static __always_inline u32 hash64(u64 key)
{
	return (u32)((key * 0x9e3779b97f4a7c15ULL) >> 32);
}

/* Of an address that the verifier knows as a pointer: only its low half is a number to it. */
static __always_inline u32 hash_pointer(u64 pointer)
{
	u32 low;

	asm volatile("%0 = %1" : "=w"(low) : "w"((u32)pointer));
	return (low * 0x9e3779b1u) >> 16;
}
