/* What the kernel programs and user space share; the other side is `hopscope_event::slice` and
 * `hopscope_slice::load::config`, where the same sizes and offsets are asserted. */
#pragma once

enum point {
	TX_SYSCALL, TX_TRANSPORT, TX_IP_OUT, TX_DEV_QUEUE, TX_QDISC_ENQUEUE, TX_QDISC_DEQUEUE, TX_DRIVER, RX_DRIVER,
	TX_DONE, RX_CORE, RX_IP, RX_TRANSPORT, RX_SOCKET, RX_WAKING, RX_SCHED_IN, RX_COPY, RX_COPIED,
	RX_RECEIVED, RX_RETURN,
	POINTS_MAX = 24,
};

enum counter {
	SEEN, UNMATCHED, NO_SLOT, CREATED, WRITTEN, RING_FULL, TOO_FAST, OTHER_PROCESS, AGED, STALE_ENDED,
	STALE_REFUSED, SPLIT_COUNT, MERGED_COUNT, COALESCED_COUNT, CROSS_CPU, DROPPED_COUNT, QUEUE_FULL, CALL_LOST,
	UNREADABLE, HITS, COST_NS, BYTES_LOST, OUT_OF_ORDER, OTHER_WOKEN, SPLIT_PARENTS,
	AMBIGUOUS, PEEKED, OFO_QUEUED, REORDERED, TX_UNSEEN, PLACED_LATE,
	COUNTERS_MAX = 32,
};

enum flag {
	F_SPLIT = 1 << 0, F_MERGED = 1 << 1, F_COALESCED = 1 << 2, F_DROPPED = 1 << 3, F_CROSS_CPU = 1 << 4,
	F_QUEUED = 1 << 5, F_READER_AWAKE = 1 << 6, F_OTHER_WOKEN = 1 << 7, F_NO_PAYLOAD = 1 << 8,
	F_QDISC_BYPASSED = 1 << 9, F_PARTIAL = 1 << 10, F_RETRANSMIT = 1 << 11, F_FORWARDED = 1 << 12,
	F_CALL_FULL = 1 << 13, F_AMBIGUOUS = 1 << 14, F_PEEKED = 1 << 15, F_OFO_QUEUED = 1 << 16, F_REORDERED = 1 << 17,
	F_TX_UNSEEN = 1 << 18,
};

/* hopscope_event::slice::StampWord */
#define INNER_OVER 0xffffULL
#define INNER_OTHER_CPU 0xfffeULL

/* hopscope_event::slice::SliceRecord */
struct slice_record {
	__u64 id, parent, t0_ns, tx_cookie, rx_cookie;
	__u32 tx_tgid, tx_tid, rx_tgid, rx_tid;
	__u32 tx_ifindex, rx_ifindex, tx_netns, rx_netns;
	__u8 source[16], destination[16];
	__u16 source_port, destination_port;
	__u32 tcp_seq, tcp_ack, payload, ip_len;
	__u16 tcp_window;
	__u8 tcp_flags, protocol, family, stamps_taken;
	__u16 drop_reason;
	__u32 flags;
	__u32 tx_call_seq, rx_call_seq;
	__s32 rx_returned;
	__u16 segments, ip_id;
	__u32 tx_call_len, reserved;
	__u8 tx_comm[16], rx_comm[16];
	__u64 stamps[POINTS_MAX];
};
_Static_assert(sizeof(struct slice_record) == 384, "contract");
_Static_assert(__builtin_offsetof(struct slice_record, tx_tgid) == 40, "contract");
_Static_assert(__builtin_offsetof(struct slice_record, source) == 72, "contract");
_Static_assert(__builtin_offsetof(struct slice_record, source_port) == 104, "contract");
_Static_assert(__builtin_offsetof(struct slice_record, tcp_window) == 124, "contract");
_Static_assert(__builtin_offsetof(struct slice_record, flags) == 132, "contract");
_Static_assert(__builtin_offsetof(struct slice_record, segments) == 148, "contract");
_Static_assert(__builtin_offsetof(struct slice_record, tx_comm) == 160, "contract");
_Static_assert(__builtin_offsetof(struct slice_record, stamps) == 192, "contract");

/* What lies in the ring: records, and before a record its packet's bytes, with BYTES_ENTRY in the id. */
#define BYTES_ENTRY (1ULL << 63)
#define SNAP_MAX 2048
#define LINK_MAX 24
struct slice_bytes {
	__u64 id;
	__u32 wire_len;   /* from the network header on */
	__u16 captured;   /* of those */
	__u16 link_len;
	__u8 link[LINK_MAX];
	__u8 bytes[SNAP_MAX];
};
_Static_assert(__builtin_offsetof(struct slice_bytes, bytes) == 40, "contract");

/* Fixed before loading: the verifier takes out what is not asked for. hopscope_slice::load::config. */
struct slice_config {
	__u32 points;        /* bit a point */
	__u32 slot_mask;     /* slots - 1 */
	__u64 age_ns;        /* a packet not seen for longer gives its slot away */
	__u8 last_point;     /* where a packet that is read ends its way */
	__u8 last_tx_point;
	__u8 has_filter;
	__u8 is_event;       /* stamps read events[cpu] in place of the clock */
	__u32 snap;          /* bytes kept of each packet; 0: none */
	__u32 ifindex;       /* 0: any */
	__u32 netns;         /* inode; 0: any */
	__u32 tgid;          /* 0: any */
	__u8 udp_in_order;   /* UDP's reader is seen per socket, not per packet */
	__u8 tx_watched;     /* enum tx_watched */
	__u8 reserved[2];
	__u8 comm[16];       /* empty: any */
};
_Static_assert(sizeof(struct slice_config) == 56, "contract");

/* Over which devices every packet that this kernel sends has passed a hook that may begin its record. */
enum tx_watched {
	TX_WATCHED_NOWHERE,
	TX_WATCHED_LOOPBACK,
	TX_WATCHED_LOCAL, /* and pairs of virtual devices */
};

/* Whatever expression, interface, namespace or process is asked for: constants are measured with packets of
 * hopscope's own, which are none of those. */
enum choose {
	CHOOSE_ASKED,
	CHOOSE_NONE,
	CHOOSE_OWN, /* those of choose_netns */
};

/* In slice_control.enabled: asked for, and every hook is attached. */
#define ON 3u

/* May be changed while programs run. hopscope_slice::load::config. */
struct slice_control {
	__u32 enabled;       /* ON, and another number above it each time that programs begin to see packets */
	__u32 choose;               /* enum choose */
	__u64 min_latency_ns;
	__u32 choose_netns;         /* inode */
	__u32 reserved;
	__u32 hit_ns[POINTS_MAX];   /* full cost of a hit that stamps */
	__u32 miss_ns[POINTS_MAX];  /* and of one that finds nothing to stamp */
	__u32 begin_ns;             /* beyond the hit */
	__u32 hand_over_ns;
};
_Static_assert(sizeof(struct slice_control) == 224, "contract");
