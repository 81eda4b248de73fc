/* The kernel's types that the programs of the echo server and of the proxy read. Of structures only names and types count,
 * not order or offsets (CO-RE); of contexts (struct bpf_sock_ops, __sk_buff) the offsets are the ABI of
 * include/uapi/linux/bpf.h. */
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
typedef _Bool bool;
#define NULL ((void *)0)

enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_SOCKHASH = 18,
	BPF_MAP_TYPE_RINGBUF = 27,
};
enum { BPF_ANY = 0, BPF_F_INGRESS = 1 };
enum { SK_DROP = 0, SK_PASS = 1 };
enum { AF_INET = 2, AF_INET6 = 10 };
enum {
	BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB = 4,
	BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB = 5,
	BPF_SOCK_OPS_STATE_CB = 10,
	BPF_SOCK_OPS_STATE_CB_FLAG = 1 << 2,
	BPF_TCP_CLOSE = 7,
};

struct bpf_sock;
struct bpf_sock_ops {
	__u32 op;
	__u32 args[4];
	__u32 family;
	__u32 remote_ip4;
	__u32 local_ip4;
	__u32 remote_ip6[4];
	__u32 local_ip6[4];
	__u32 remote_port;
	__u32 local_port;
	__u32 is_fullsock;
	__u32 snd_cwnd;
	__u32 srtt_us;
	__u32 bpf_sock_ops_cb_flags;
	__u32 state;
	__u32 rtt_min;
	__u32 snd_ssthresh;
	__u32 rcv_nxt;
	__u32 snd_nxt;
	__u32 snd_una;
};
struct __sk_buff {
	__u32 len;
	__u32 pkt_type;
	__u32 mark;
	__u32 queue_mapping;
	__u32 protocol;
	__u32 vlan_present;
	__u32 vlan_tci;
	__u32 vlan_proto;
	__u32 priority;
	__u32 ingress_ifindex;
	__u32 ifindex;
	__u32 tc_index;
	__u32 cb[5];
	__u32 hash;
	__u32 tc_classid;
	__u32 data;
	__u32 data_end;
	__u32 napi_id;
	__u32 family;
	__u32 remote_ip4;
	__u32 local_ip4;
	__u32 remote_ip6[4];
	__u32 local_ip6[4];
	__u32 remote_port;
	__u32 local_port;
	__u32 data_meta;
	union { void *flow_keys; __u64 : 64; } __attribute__((aligned(8)));
	__u64 tstamp;
	__u32 wire_len;
	__u32 gso_segs;
	union { struct bpf_sock *sk; __u64 : 64; } __attribute__((aligned(8)));
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock {
	void *sk_user_data;
	int sk_rcvbuf;
};
struct tcp_sock {
	__u32 write_seq;
	__u32 snd_una;
	__u32 copied_seq;
};
struct sk_buff_head {
	__u32 qlen;
};
typedef struct {
	__s64 counter;
} atomic_long_t;
struct mutex {
	atomic_long_t owner;
};
struct sk_buff {
	char cb[48];
};
struct tcp_skb_cb {
	__u32 seq;
	__u32 end_seq;
};
/* Before Linux 6.4 a packet that is delivered in pieces waits here and no longer in the queue. */
struct sk_psock_work_state {
	struct sk_buff *skb;
};
struct sk_psock {
	struct sk_buff_head ingress_skb;
	struct sk_psock_work_state work_state;
	struct mutex work_mutex;
};

#pragma clang attribute pop
