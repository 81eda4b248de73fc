/* What the programs of the echo server and user space share; the other side is `echo::kernel::contract`. */
#pragma once

/* An IPv4 address is written as ::ffff:a.b.c.d, as a dual-stack socket has it. Words as on the wire. */
struct echo_tuple {
	__u32 client[4], server[4];
	__u16 client_port, server_port; /* as the machine counts */
};

enum echo_mode { UNDECIDED, EGRESS, INGRESS, USER, OVER };

/* A connection of the server's, from its establishment to its end. */
struct echo_connection {
	__u64 redirected; /* bytes, never fewer than what was handed over */
	__u64 passed;     /* bytes left to user space */
	__u64 client;     /* cookie of the client's socket; 0: not in reach */
	__u32 mode;
	__u32 first_out;  /* sequence number of the first byte to the client */
	__u32 first_in;   /* and of the first one from it */
	struct echo_tuple tuple;
	__u32 next_in;    /* of the first byte from it that was not seen yet */
	__u32 unsaid;     /* an event that found no room */
};

/* A socket of this machine that is connected to the server. */
struct echo_client {
	__u64 cookie;
	__u32 first_out, first_in;
};

enum echo_event_kind { NOW_USER = 1, NOW_OVER = 2 };

struct echo_event {
	__u64 cookie;
	__u32 kind, reserved;
};

/* The answer of the program that is asked whether everything is under way. */
enum echo_answer { DRAINED, PENDING, UNKNOWN };

/* What it is asked, behind a link header that it has to have. */
struct echo_question {
	__u8 link[14];
	__u8 reserved[2];
	__u64 cookie;
	__u64 user_sent;
	__u8 rest[32];
};

struct echo_config {
	__u64 netns_cookie;
	__u32 port;          /* as the machine counts */
	__u32 egress_limit;  /* bytes not acknowledged yet */
	__u32 ingress_limit; /* packets before the client's socket */
	__u8 families;       /* 1: IPv4, 2: IPv6 */
	__u8 any_address;
	__u8 enrol_clients;
	__u8 reserved;
	__u32 address[4];
};

enum echo_counter {
	ENROLLED, NO_ROOM, NOT_ENROLLED, CLIENTS, CLIENTS_NOT_ENROLLED,
	EGRESS_CONNECTIONS, INGRESS_CONNECTIONS, EGRESS_BYTES, INGRESS_BYTES, PASSED_BYTES,
	CLIENT_IS_SLOW, REDIRECT_FAILED, OVER_LIMIT, NO_RECORD, EVENTS_LATE, VERDICTS,
	OVERLAPS, DROPPED_BYTES, ECHO_COUNTERS = 18,
};
