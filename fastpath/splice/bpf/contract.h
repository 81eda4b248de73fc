/* What user space reads and writes: src/load/control.rs and src/load/counts.rs have the same layout. */
#pragma once
#include "kernel.h"
#include "tuple.h"

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
	/* Bytes are summed up where programs send and receive them. */
	u32 verify;
	/* Of the messages that are handed over, each so many'th gets another first byte, or loses it: to see
	 * that it is noticed. Only `splice_msg_spoiling` does so. */
	u32 change_each;
	u32 lose_each;
	u32 unused;
	u16 ports[PORTS_MAX];
};

struct listener {
	u64 netns;
	u64 port;
};

/* The last connection of a program that several of its threads were in. */
struct sharing {
	u32 pid;
	/* Then `listener` is where it was accepted. */
	u32 is_server;
	struct listener listener;
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
	/* Ends of which one thread sent while another waited. */
	COUNT_SHARED_BY_THREADS,
	/* Of directions of connections: two each. */
	COUNT_VERIFIED,
	COUNT_VERIFIED_BYTES,
	COUNT_MISMATCHED,
	/* Why a direction was not compared. */
	COUNT_UNVERIFIED_UNREAD,
	COUNT_UNVERIFIED_UNSEEN,
	COUNT_UNVERIFIED_TOGETHER,
	COUNT_UNVERIFIED_UNREADABLE,
	COUNT_UNVERIFIED_EARLY,
	COUNT_UNVERIFIED_FULL,
	/* Of connections that are open at the end: user space knows when that is. */
	COUNT_VERIFIED_OPEN,
	COUNT_UNVERIFIED_OPEN,
	/* Sockets that joined and are not closed: user space knows when it counts. */
	COUNT_ENDS_OPEN,
	COUNT_MAX,
};

/* One way of a connection, as one end's program sees it. */
struct way {
	u64 bytes;
	/* Of all whole words of eight bytes, by their place in the stream. */
	u64 sum;
	/* The bytes after the last whole word. */
	u64 rest;
	/* Calls that have begun and not ended. */
	u32 calls;
	/* enum doubt */
	u32 doubts;
};

enum doubt {
	/* Bytes went by a call that is not watched: io_uring, sendfile, splice, recvmmsg and others. */
	DOUBT_UNSEEN = 1,
	/* Several threads in calls of the same direction: which came first is not known. */
	DOUBT_TOGETHER = 2,
	/* The program's memory could not be read any more. */
	DOUBT_UNREADABLE = 4,
	/* A call that had begun before the connection was joined. */
	DOUBT_EARLY = 8,
	/* Its program also uses calls that cannot be watched. */
	DOUBT_OTHERS = 16,
	/* Not a doubt: the reader was told that there is no more. */
	IS_AT_END = 32,
	/* The program ended its reading by itself. */
	IS_SHUT = 64,
};

struct watched {
	struct tuple name;
	u32 is_server;
	u64 cookie;
	/* The other end's; 0: not known yet. */
	u64 peer;
	u64 sock;
	/* Bytes that were handed over, and where TCP's began. */
	u64 direct;
	u32 first_seq;
	u32 is_closed;
	/* At the client's: of both. */
	u32 ends_closed;
	u32 unused;
	struct way sent;
	struct way received;
};

enum wrong_kind {
	WRONG_BYTES,
	WRONG_MORE,
	WRONG_MISSING,
};

/* A direction in which not the bytes arrived that were sent. */
struct wrong {
	struct tuple name;
	u32 by_server;
	u64 sent;
	u64 received;
	u64 kind;
};

struct counts {
	u64 of[COUNT_MAX];
};
