/* The calls that concern sockets (arch/x86/entry/syscalls/syscall_64.tbl), by where their descriptors are. */
#pragma once
#include "bypass.h"
#include <bpf/bpf_helpers.h>

enum {
	/* Of struct thread_info.status: a call of another table (arch/x86/include/asm/thread_info.h). */
	TS_COMPAT = 2,
	S_IFMT = 0170000,
	S_IFSOCK = 0140000,
	AF_UNIX = 1,
};

enum shape {
	SHAPE_NONE,
	/* socket(2): the first argument is the family. */
	SHAPE_MAKES,
	SHAPE_FIRST,
	SHAPE_THIRD,
	/* dup2(2), dup3(2): what is closed is the second one. */
	SHAPE_FIRST_OR_SECOND,
	/* ioctl(2) */
	SHAPE_IOCTL,
	/* close_range(2): from, to. */
	SHAPE_RANGE,
	/* splice(2) */
	SHAPE_FIRST_OR_THIRD,
	/* struct pollfd, and their number. */
	SHAPE_POLL,
	/* io_uring: what its entries do is no call. */
	SHAPE_RING,
};

static __always_inline enum shape shape_of(long number)
{
	switch (number) {
	case 41: /* socket */
		return SHAPE_MAKES;
	case 0: /* read */
	case 1: /* write */
	case 3: /* close */
	case 19: /* readv */
	case 20: /* writev */
	case 32: /* dup */
	case 40: /* sendfile: to */
	case 42 ... 52: /* connect accept sendto recvfrom sendmsg recvmsg shutdown bind listen getsockname getpeername */
	case 54: /* setsockopt */
	case 55: /* getsockopt */
	case 72: /* fcntl */
	case 288: /* accept4 */
	case 299: /* recvmmsg */
	case 307: /* sendmmsg */
	case 327: /* preadv2 */
	case 328: /* pwritev2 */
		return SHAPE_FIRST;
	case 33: /* dup2 */
	case 292: /* dup3 */
		return SHAPE_FIRST_OR_SECOND;
	case 16:
		return SHAPE_IOCTL;
	case 436:
		return SHAPE_RANGE;
	case 233: /* epoll_ctl */
		return SHAPE_THIRD;
	case 275: /* splice */
		return SHAPE_FIRST_OR_THIRD;
	case 7: /* poll */
	case 271: /* ppoll */
		return SHAPE_POLL;
	case 425: /* io_uring_setup */
		return SHAPE_RING;
	}
	return SHAPE_NONE;
}

/* isatty(3), which libc asks of any descriptor. */
#define TCGETS 0x5401

/* syscall_32.tbl: read write close dup ioctl fcntl dup2 readv writev fcntl64 */
static __always_inline bool has_descriptor_of_compat(long number)
{
	switch (number) {
	case 3:
	case 4:
	case 6:
	case 41:
	case 54:
	case 55:
	case 63:
	case 145:
	case 146:
	case 221:
		return true;
	}
	return false;
}

/* syscall_32.tbl: socketcall, recvmmsg, sendmmsg, socket to shutdown. */
static __always_inline bool is_network_of_compat(long number)
{
	return number == 102 || number == 337 || number == 345 || (number >= 359 && number <= 373);
}
