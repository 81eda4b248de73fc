/* What is kept of each end, with its socket. */
#pragma once
#include "contract.h"

/* One end as the other one knows it. The address is only ever read through, never followed without
 * comparing the cookie: the socket may be gone, and another one may lie there. */
struct peer {
	u64 cookie;
	u64 sock;
	/* What is kept of it, to be read in the same way. */
	u64 end;
};

/* Threads of one end that may be in sends of redirected messages at once. */
#define IN_FLIGHT_MAX 4

/* A redirected message that may not be in the other end's queue yet; thread 0: none. */
struct in_flight {
	u64 thread;
	u64 message;
};

/* How much was handed over up to some moment. */
struct mark {
	u64 bytes;
	u64 cost;
};

enum mode {
	/* Bytes are on their way through TCP, or were never anywhere: the short cut waits until the
	 * other end has read them all. */
	MODE_TCP,
	MODE_DIRECT,
	MODE_REFUSED,
	MODE_ALONE,
};

struct end {
	u64 cookie;
	u64 sock;
	struct peer peer;
	/* May still be handed over before the other end is looked at again. */
	s64 credit;
	struct mark sent;
	/* Positions at the last two looks, and the last of which all before it is known to be read. */
	struct mark looks[2];
	struct mark read;
	u32 mode;
	u32 is_joined;
	u32 is_server;
	/* Several threads of a program were seen in calls on it. */
	u32 is_shared;
	/* enum stage */
	u32 stage;
	/* Both ends are in the map. */
	u32 is_open;
	/* Every message takes TCP: it is about to be taken out of the map. */
	u32 leaving;
	/* Of a connection that is watched, at the server's end: the recv of an end may wait, when both were last seen. */
	u32 may_wait;
	/* enum memory: of the other end. */
	u32 memory;
	/* The connection that it joined with, as the interface for programs has it: see is_same_connection. */
	u32 remote_ip4;
	u32 remote_port;
	u32 local_port;
	/* How often another thread sent than before, and which did last. */
	u32 senders;
	/* Of `changes`, when it was last looked at the other end. */
	u32 changes_seen;
	u64 sender;
	/* Sent, by either way, while it was in the map. */
	u64 messages;
	/* enum incompatible */
	u32 incompatible;
	u32 peer_incompatible;
	/* The thread in a send of which several messages may come; 0: none. */
	u64 long_send;
	/* Others than it send there, too; and sent much at once. */
	u64 first_sender;
	u32 has_senders;
	u32 takes_tcp;
	/* TCP has ended the connection; its program has not, and has redirected bytes to read: in the map until then. */
	u32 lingers;
	/* Closed with bytes unread: its FIN is to be made a reset. */
	u32 resets;
	/* enum close */
	u32 close;
	/* Since it joined, `in_flight` is kept whenever it sends, and `arrived` whenever something comes. */
	u32 is_followed;
	/* Its program receives with MSG_PEEK; that was told. */
	u32 has_peeked;
	u32 has_told;
	/* Messages that were to be redirected, ever. */
	u64 redirected;
	struct in_flight in_flight[IN_FLIGHT_MAX];
	/* Of the other end's in flight, by their places: the last one that came into this end's queue. */
	u64 arrived[IN_FLIGHT_MAX];
	/* `redirected` of the other end when the program closed this one. */
	u64 redirected_before;
};

enum close {
	CLOSE_NONE,
	/* Shut down by its program (SHUT_WR), which may still receive: by TCP, as far as bytes begin to come since then. */
	CLOSE_SHUT,
	/* Its program can neither send nor receive any more. */
	CLOSE_BEGUN,
	/* With bytes that it has not read, or that came later. */
	CLOSE_UNREAD,
};

/* Its program did something that redirected bytes do not keep to: it stays on TCP, or gets back to it. */
enum incompatible {
	COMPATIBLE,
	INCOMPATIBLE_OPTION,
	INCOMPATIBLE_CALL,
};

enum stage {
	STAGE_NONE,
	/* Both ends take part; whether they may be joined is being found out. */
	STAGE_WATCHED,
	STAGE_JOINED,
	/* Plain TCP for good. */
	STAGE_OUT,
};

enum memory {
	MEMORY_UNKNOWN,
	MEMORY_LIMITED,
	MEMORY_FREE,
};
