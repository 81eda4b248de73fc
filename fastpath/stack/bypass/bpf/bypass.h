/* What the program that watches is told and tells; src/contract.rs has the same layouts. */
#pragma once
#include <kernel.h>

#define NAME_BYTES 64
/* In a call's number: of the table of 32-bit programs. */
#define IS_COMPAT (1U << 31)
/* The preloaded library's. */
#define LIBRARY "libhopscope_preload.so"

struct bypass_config {
	/* Of the watcher's pid namespace (ns/pid). */
	u64 namespace_device;
	u64 namespace_inode;
	/* The process that becomes the command, by its number there. */
	u32 root;
	/* The process that made the other ends of sockets that are the stack's (0: none). */
	u32 instance;
	/* hopscope_stack_abi::mark */
	u64 mark;
};

enum bypass_event_kind {
	EVENT_CALL = 1,
	/* A process of the command has ended. */
	EVENT_END = 2,
};

/* Of sockets and calls. */
enum bypass_family {
	FAMILY_OTHER = 0,
	FAMILY_INET = 2,
	FAMILY_INET6 = 10,
	/* A pair with the instance. */
	FAMILY_STACK = 1000,
};

struct bypass_event {
	u32 kind;
	/* In its own pid namespace; and the kernel's number, which `calls` has. */
	u32 process;
	u32 key_process;
	u32 number;
	/* -1: the call names none. */
	s32 fd;
	u32 family;
	/* The instruction behind the call's; in the file below, if there is one. */
	u64 at;
	u64 file_offset;
	/* 1: could not be told now, user space looks. */
	u32 is_file_unknown;
	u32 unused;
	char comm[16];
	char file[NAME_BYTES];
};

struct bypass_key {
	u64 at;
	u32 process;
	u32 number;
};

struct bypass_calls {
	u64 calls;
	/* The library's own: not counted. */
	u64 is_own;
};

struct bypass_counters {
	/* Of the command, that run. */
	u64 running;
	u64 processes;
	/* No room: children of the command that are not watched. */
	u64 unwatched;
	/* Calls that by-passed the hooks, which are in no row. */
	u64 unnamed;
	/* Events that had no room. */
	u64 untold;
};

_Static_assert(sizeof(struct bypass_config) == 32, "CONFIG_BYTES of the other side");
_Static_assert(sizeof(struct bypass_event) == 48 + 16 + NAME_BYTES, "EVENT_BYTES of the other side");
_Static_assert(sizeof(struct bypass_key) == 16 && sizeof(struct bypass_calls) == 16, "Row of the other side");
_Static_assert(sizeof(struct bypass_counters) == 40, "Counters of the other side");
