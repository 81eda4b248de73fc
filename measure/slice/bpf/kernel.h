/* The kernel's types, as far as they are read here: relocated by CO-RE against the running kernel, so
 * only names and types count, not order or offsets. */
#pragma once

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u16 __sum16;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)

enum bpf_map_type {
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERF_EVENT_ARRAY = 4,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_RINGBUF = 27,
};
enum {
	BPF_F_CURRENT_CPU = 0xffffffffULL,
	BPF_F_MMAPABLE = 1U << 10,
	BPF_RB_NO_WAKEUP = 1ULL << 0,
	BPF_RB_AVAIL_DATA = 0,
};
struct bpf_perf_event_value {
	__u64 counter, enabled, running;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	unsigned int inum;
};
struct net {
	struct ns_common ns;
};
typedef struct {
	struct net *net;
} possible_net_t;

typedef struct {
	s64 counter;
} atomic64_t;

struct in6_addr {
	union {
		__u8 u6_addr8[16];
	} in6_u;
};

struct sock_common {
	union {
		struct {
			__be32 skc_daddr;
			__be32 skc_rcv_saddr;
		};
	};
	union {
		struct {
			__be16 skc_dport;
			__u16 skc_num;
		};
	};
	unsigned short skc_family;
	volatile unsigned char skc_state;
	possible_net_t skc_net;
	atomic64_t skc_cookie;
};
struct sk_buff_head {
	__u32 qlen;
};
struct socket;
struct sock {
	struct sock_common __sk_common;
	struct sk_buff_head sk_receive_queue;
	struct socket *sk_socket;
	u16 sk_protocol;
};
struct udp_sock {
	struct sk_buff_head reader_queue;
};
struct tcp_sock {
	u32 write_seq;
	u32 snd_nxt;
	u32 copied_seq;
	u32 rcv_nxt;
};
struct iov_iter {
	unsigned long iov_offset;
	unsigned long count;
};
struct msghdr {
	struct iov_iter msg_iter;
};

struct rtnl_link_ops {
	const char *kind;
};
struct net_device {
	int ifindex;
	unsigned int flags;
	possible_net_t nd_net;
	const struct rtnl_link_ops *rtnl_link_ops;
};
struct netdev_queue {
	struct net_device *dev;
};
struct Qdisc {
	unsigned int flags;
};

typedef unsigned int sk_buff_data_t;
struct sk_buff {
	struct net_device *dev;
	struct sock *sk;
	unsigned int len;
	unsigned int data_len;
	__be16 protocol;
	__u16 transport_header;
	__u16 network_header;
	__u16 mac_header;
	sk_buff_data_t tail;
	sk_buff_data_t end;
	unsigned char *head;
	unsigned char *data;
};
struct skb_shared_info {
	unsigned short gso_size;
	unsigned short gso_segs;
};

struct file {
	void *private_data;
};
struct reference_count {
	long counter;
};
/* Since Linux 6.13, and before. */
struct file___referred {
	struct reference_count f_ref;
};
struct file___counted {
	struct reference_count f_count;
};
struct socket {
	struct file *file;
	struct sock *sk;
};
struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};
struct files_struct {
	struct reference_count count;
	struct fdtable *fdt;
};
struct task_struct {
	int pid;
	int tgid;
	char comm[16];
	struct files_struct *files;
};
struct pt_regs {
	unsigned long di;
};
/* Any kernel structure that begins with a 64-bit number: what raw bytes are read through. */
struct timespec64 {
	s64 tv_sec;
};

#pragma clang attribute pop

struct __sk_buff {
	__u32 len;
};
