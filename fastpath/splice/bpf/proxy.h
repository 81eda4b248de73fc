/* What the proxy's programs and user space share; the other side is `proxy::kernel::contract`. */
#pragma once

enum way_mode { FRESH, BY_KERNEL, BY_USER, OVER };

/* One direction of a connection, by the cookie of the socket that its bytes arrive at. User space makes
 * it before the socket is enrolled; from then on only that socket's verdicts write to it, which run
 * under the socket's lock. */
struct proxy_way {
	__u64 redirected; /* bytes handed to the other socket */
	__u64 passed;     /* bytes left to user space */
	__u64 peer;       /* cookie of the other socket */
	__u64 allowed;    /* up to this sum of redirected bytes nothing needs to be looked at */
	__u32 mode;
	__u32 base;       /* sequence number of the first byte of this direction at the other socket */
	__u32 is_down;    /* from the upstream to the client */
	__u32 is_forced;  /* the other direction went to user space; its verdict writes this */
	__u64 stays_until; /* with user space, until so many bytes were left to it */
	__u32 takeovers;
	__u32 is_held_back; /* user space was asked to close this socket's window */
	__u32 next_seq;     /* sequence number of the first byte that was not seen yet, once it is known */
	__u32 has_next;
	__u32 urgent_seq; /* of the last urgent byte */
	__u32 had_urgent;
};

/* What user space has done of what was left to it. */
struct proxy_progress {
	__u64 received;
	__u64 sent;
};

enum proxy_event_kind { NOW_USER = 1, NOW_OVER = 2, NOW_KERNEL = 3, HOLD_BACK = 4 };

struct proxy_event {
	__u64 cookie;
	__u32 kind, reserved;
};

enum proxy_answer { DRAINED, PENDING };

/* What the asked program is asked, behind a link header that it has to have. */
struct proxy_question {
	__u8 link[14];
	__u8 reserved[2];
	__u64 cookie;
	__u64 user_sent;
	__u8 rest[32];
};

struct proxy_config {
	/* Bytes that TCP has not taken from the kernel's worker: beyond it user space takes over. */
	__u32 soft_limit;
	/* Bytes left to user space that nobody charges: from an eighth on its sender is held back, beyond
	 * it segments are refused. */
	__u32 hard_limit;
};

enum proxy_counter {
	BYTES_UP, BYTES_DOWN, PASSED_BYTES, READER_IS_SLOW, WITH_THE_OTHER, REDIRECT_FAILED, BACK_TO_KERNEL, SENDER_HELD_BACK,
	OVER_LIMIT, NO_RECORD, EVENTS_LOST, VERDICTS, SEGMENTS_REFUSED, OVERLAPS,
	URGENT_LEFT_OUT, URGENT_IN_LINE, PROXY_COUNTERS = 16,
};

/* Of a filter's answer: how much of a packet is kept. */
enum { WHOLE = -1 };

_Static_assert(sizeof(struct proxy_way) == 80, "WAY_BYTES of the other side");
_Static_assert(__builtin_offsetof(struct proxy_way, is_down) == 40, "IS_DOWN_AT of the other side");
_Static_assert(sizeof(struct proxy_question) == 64, "QUESTION_BYTES of the other side");
_Static_assert(sizeof(struct proxy_config) == 8, "CONFIG_BYTES of the other side");
