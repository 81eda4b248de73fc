/* What user space reads and writes: src/load/control.rs and src/load/counts.rs have the same layout. */
#pragma once
#include "kernel.h"

#define PORTS_MAX 64
#define NAME_MAX 16

struct control {
	/* Every message takes TCP from now on, and no connection is joined. */
	u32 stop;
	u32 guard;
	/* 0: every port. */
	u32 ports_n;
	u32 pid;
	/* Of one direction of a connection, at most: bytes and what the kernel keeps around them. */
	u64 limit_bytes;
	/* Sockets that may be joined at once. */
	s64 ends_max;
	s64 ends_now;
	u16 ports[PORTS_MAX];
};

enum count {
	COUNT_DIRECT_MESSAGES,
	COUNT_DIRECT_BYTES,
	COUNT_TCP_MESSAGES,
	COUNT_TCP_BYTES,
	/* Why a message of a joined socket took TCP. */
	COUNT_TCP_NO_PEER_YET,
	COUNT_TCP_PRESSURE,
	COUNT_TCP_UNREAD,
	COUNT_TCP_STOPPED,
	COUNT_TCP_PEER_GONE,
	COUNT_TO_TCP,
	COUNT_TO_DIRECT,
	COUNT_CONNECTIONS,
	COUNT_ENDS_JOINED,
	COUNT_ENDS_LEFT,
	/* Why a connection was not joined. */
	COUNT_SERVER_OUTSIDE,
	COUNT_CLIENT_OUTSIDE,
	COUNT_FULL,
	COUNT_REFUSED,
	COUNT_MAP_ERROR,
	COUNT_MAX,
};

struct counts {
	u64 of[COUNT_MAX];
};
