/* What user space reads and writes: src/load/control.rs and src/load/counts.rs have the same layout. */
#pragma once
#include <kernel.h>
#include "tuple.h"

#define PORTS_MAX 64
#define NAME_MAX 16
/* Of an affinity mask: CPU_SETSIZE of sched.h is 1024. */
#define PLACED_WORDS 16

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
	/* Join as soon as both ends are established, also where an end may wait in recv. */
	u32 blocking;
	/* Join ends of different users. */
	u32 across_users;
	/* Which thread sends is noted. */
	u32 pair;
	/* `splice_fin` is attached where connections send. */
	u32 resets;
	/* Messages are followed from their verdict into the other end's queue. */
	u32 in_flight;
	/* So long is stayed between a message's verdict and the queue: to see what comes in between. Only
	 * `splice_msg_spoiling` does so. */
	u64 linger_ns;
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
	COUNT_TCP_MEMORY,
	COUNT_TCP_READER,
	COUNT_TCP_LEAVING,
	COUNT_TCP_SHARED,
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
	COUNT_OTHER_USER,
	COUNT_BLOCKING,
	COUNT_UNDECIDED,
	COUNT_OPTIONS,
	COUNT_CALLS,
	/* Why a connection was taken out of the map while it was open. */
	COUNT_RELEASED_BLOCKING,
	COUNT_RELEASED_UNLIKE,
	COUNT_RELEASED_BULK,
	COUNT_RELEASED_OTHER_USER,
	COUNT_RELEASED_REFUSED,
	COUNT_RELEASED_CALLS,
	/* Bytes that a receive with MSG_OOB took out of the stream. */
	COUNT_URGENT_MISREAD,
	/* Ends whose reader was shown TCP's bytes behind redirected ones. */
	COUNT_GATHERED,
	/* Ends that were closed with redirected bytes unread, or on their way. */
	COUNT_CLOSED_UNREAD,
	/* Of these, ends whose FIN was made a reset, or that TCP has reset. */
	COUNT_RESET_UNREAD,
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
	/* User space counts them, in splice_pairs. */
	COUNT_PAIRED,
	COUNT_UNPAIRED_SLOWER,
	COUNT_UNPAIRED_OTHER,
	COUNT_MASKS_CHANGED,
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

/* What user space knows of an end that takes part: src/load/ends.rs has the same layout. */
struct facts {
	u64 cookie;
	u64 peer;
	/* In its queue, not read; 0 where the kernel keeps no sum. */
	u64 queued;
	/* What it sent so far: redirected bytes, and messages by either way. */
	u64 direct;
	u64 messages;
	/* Of its descriptor (/proc/PID/fd: socket:[…]); 0 while it has none. */
	u64 inode;
	/* Thread that sent last (bpf_get_current_pid_tgid); 0: it is not noted. */
	u64 sender;
	/* Calls on the socket that hold its psock: sends, and receives that found nothing from TCP. */
	u32 users;
	/* Tasks asleep in a send or receive on it. */
	u32 asleep;
	/* Sequence numbers of TCP: read, and written. */
	u32 copied;
	u32 written;
	u32 uid;
	/* enum fact */
	u32 flags;
	/* How often another thread sent than before. */
	u32 senders;
	/* Number of the device that it sends by, in that network namespace; 0 without a route. */
	u32 device;
	u64 netns;
};

enum fact {
	FACT_SERVER = 1,
	FACT_JOINED = 2,
	FACT_OPEN = 4,
	FACT_LEAVING = 8,
	FACT_QUEUED = 16,
	/* O_NONBLOCK is not set: a recv may wait. */
	FACT_CAN_WAIT = 32,
	/* An option is set that redirected bytes do not keep to. */
	FACT_UNLIKE = 64,
	/* Not accepted yet, or closed by its program. */
	FACT_NO_FILE = 128,
	/* Its program used a call that redirected bytes do not keep to. */
	FACT_CALLS = 256,
	/* Something came by TCP that is not read. */
	FACT_UNREAD = 512,
	/* A message that the other end was to redirect may be on its way into its queue; also where that is not known. */
	FACT_COMING = 1024,
	/* Its program has received with MSG_PEEK since it joined. */
	FACT_PEEKED = 2048,
	/* What comes by TCP goes into the queue of redirected bytes (gather.h). */
	FACT_GATHERED = 4096,
};

/* What a program did with a socket that redirected bytes do not keep to: by the name of its file. */
struct incompatible_use {
	char name[NAME_MAX];
	/* Of setsockopt(2); LEVEL_CALL: `what` is an enum incompatible_call. */
	u32 level;
	u32 what;
};

#define LEVEL_CALL 0xffffffff

enum incompatible_call {
	CALL_SPLICE,
	CALL_RECEIVE_FLAGS,
	CALL_RING,
	CALL_PEEK,
	CALL_SEND_FLAGS,
};

/* A process that has an io_uring. The same number may come to run another program: that has another memory. */
struct ring_user {
	u64 memory;
	u32 process;
	u32 unused;
};

/* What user space has done with an end, by its cookie. */
enum order {
	ORDER_NONE,
	/* Into the map, if it still reads without waiting. */
	ORDER_JOIN,
	/* Both ends are in the map: messages may be redirected. */
	ORDER_OPEN,
	/* Every message takes TCP from now on. */
	ORDER_LEAVE,
	/* Plain TCP for good, and out of the map: nothing is in its queue, nor on its way there. */
	ORDER_RELEASE,
	/* Its reader is shown what came by TCP behind redirected bytes. */
	ORDER_GATHER,
};

struct order_entry {
	u32 order;
	/* enum count; COUNT_MAX for none. */
	u32 reason;
};

enum placed_state {
	/* Not looked at, or this kernel keeps no affinity that was asked for (before 6.2). */
	PLACED_UNKNOWN,
	/* The last to set its affinity was the accelerator. */
	PLACED_KEPT,
	/* Somebody else has set it since. */
	PLACED_CHANGED,
	/* Restored, or made by one that was. */
	PLACED_RESTORED,
};

/* A thread whose affinity was changed, by its id; and those that it made since, which have inherited it. */
struct placed {
	/* Cookie of the server's end of the connection for which. */
	u64 pair;
	u64 processor;
	/* enum placed_state */
	u64 state;
	/* task_struct.user_cpus_ptr as the accelerator's call left it: each sched_setaffinity(2) puts another one there. */
	u64 asked_at;
	/* Before: a bit for each processor. */
	u64 mask[PLACED_WORDS];
};

struct counts {
	u64 of[COUNT_MAX];
};
