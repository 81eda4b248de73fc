/* Types of the kernel and of its interface for programs (linux/bpf.h), as far as they are used here.
 * Kernel structures are relocated by CO-RE: only names and types count. Those of the interface have
 * its layout. */
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
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_SOCKHASH = 18,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
};
enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_F_NO_PREALLOC = 1U << 0,
	BPF_F_INGRESS = 1ULL << 0,
	BPF_SK_STORAGE_GET_F_CREATE = 1ULL << 0,
};
enum sk_action {
	SK_DROP = 0,
	SK_PASS = 1,
};

/* What a sockops program is called for (linux/bpf.h). */
enum {
	BPF_SOCK_OPS_RWND_INIT = 2,
	BPF_SOCK_OPS_TCP_CONNECT_CB = 3,
	BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB = 4,
	BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB = 5,
	BPF_SOCK_OPS_STATE_CB = 10,
	BPF_SOCK_OPS_TCP_LISTEN_CB = 11,
	BPF_SOCK_OPS_STATE_CB_FLAG = 1 << 2,
};
enum {
	AF_INET = 2,
	AF_INET6 = 10,
};
/* include/net/tcp_states.h */
enum {
	TCP_ESTABLISHED = 1,
	TCP_FIN_WAIT1 = 4,
	TCP_FIN_WAIT2 = 5,
	TCP_CLOSE = 7,
	TCP_CLOSE_WAIT = 8,
};
/* Of sk_shutdown (include/net/sock.h). */
enum {
	RCV_SHUTDOWN = 1,
	SEND_SHUTDOWN = 2,
};
enum {
	IPPROTO_TCP = 6,
	/* include/net/tcp.h */
	TCP_NAGLE_CORK = 2,
};

struct bpf_sock {
	__u32 bound_dev_if;
	__u32 family;
	__u32 type;
	__u32 protocol;
};
#define CTX_POINTER(type, name)                                                                        \
	union {                                                                                        \
		type name;                                                                             \
		__u64 : 64;                                                                            \
	} __attribute__((aligned(8)))

struct bpf_sock_ops {
	__u32 op;
	union {
		__u32 args[4];
		__u32 reply;
	};
	__u32 family;
	__u32 remote_ip4;
	__u32 local_ip4;
	__u32 remote_ip6[4];
	__u32 local_ip6[4];
	/* Network order, in the upper half on this byte order. */
	__u32 remote_port;
	/* Host order. */
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
	__u32 mss_cache;
	__u32 ecn_flags;
	__u32 rate_delivered;
	__u32 rate_interval_us;
	__u32 packets_out;
	__u32 retrans_out;
	__u32 total_retrans;
	__u32 segs_in;
	__u32 data_segs_in;
	__u32 segs_out;
	__u32 data_segs_out;
	__u32 lost_out;
	__u32 sacked_out;
	__u32 sk_txhash;
	__u64 bytes_received;
	__u64 bytes_acked;
	CTX_POINTER(struct bpf_sock *, sk);
};

struct bpf_sockopt {
	CTX_POINTER(struct bpf_sock *, sk);
	CTX_POINTER(void *, optval);
	CTX_POINTER(void *, optval_end);
	__s32 level;
	__s32 optname;
	__s32 optlen;
	__s32 retval;
};

struct sk_msg_md {
	CTX_POINTER(void *, data);
	CTX_POINTER(void *, data_end);
	__u32 family;
	__u32 remote_ip4;
	__u32 local_ip4;
	__u32 remote_ip6[4];
	__u32 local_ip6[4];
	__u32 remote_port;
	__u32 local_port;
	__u32 size;
	CTX_POINTER(struct bpf_sock *, sk);
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	s64 counter;
} atomic64_t;
typedef struct {
	int counter;
} atomic_t;
struct list_head {
	struct list_head *next, *prev;
};
typedef struct {
	u32 val;
} kuid_t;
typedef struct {
	int owned;
} socket_lock_t;
struct refcount_struct {
	atomic_t refs;
};
struct proto;
struct net {
	u64 net_cookie;
};
typedef struct {
	struct net *net;
} possible_net_t;
enum sock_flags {
	SOCK_RCVTSTAMP = 13,
};
struct sk_filter;
struct sock_common {
	possible_net_t skc_net;
	atomic64_t skc_cookie;
	__be16 skc_dport;
	__u16 skc_num;
	volatile unsigned char skc_state;
	unsigned long skc_flags;
	struct proto *skc_prot;
};
struct proto {
	atomic64_t *memory_allocated;
	long *sysctl_mem;
};
struct page_counter {
	atomic64_t usage;
	unsigned long max;
	struct page_counter *parent;
};
struct mem_cgroup {
	struct page_counter memory;
	struct page_counter tcpmem;
	bool tcpmem_active;
};
struct socket;
struct wait_queue_head {
	struct list_head head;
};
struct wait_queue_entry {
	void *private;
	struct list_head entry;
};
struct socket_wq {
	struct wait_queue_head wait;
};
struct sock {
	struct sock_common __sk_common;
	struct socket_wq *sk_wq;
	int sk_rcvbuf;
	int sk_sndbuf;
	void *sk_user_data;
	struct socket *sk_socket;
	u8 sk_shutdown;
	int sk_err;
	kuid_t sk_uid;
	int sk_rcvlowat;
	int sk_peek_off;
	u32 sk_tsflags;
	struct sk_filter *sk_filter;
	socket_lock_t sk_lock;
	struct mem_cgroup *sk_memcg;
};
struct file;
struct socket {
	struct file *file;
	struct sock *sk;
};
struct tcp_sock {
	u32 write_seq;
	u32 snd_una;
	u32 copied_seq;
	u32 rcv_nxt;
	u8 recvmsg_inq : 1;
	u8 nonagle : 4;
};
struct sk_psock {
	struct list_head ingress_msg;
	u32 msg_tot_len;
	struct refcount_struct refcnt;
};

struct qstr {
	const unsigned char *name;
};
struct dentry {
	struct qstr d_name;
};
struct path {
	struct dentry *dentry;
};
struct super_block {
	u32 s_dev;
};
struct inode {
	struct super_block *i_sb;
	unsigned short i_mode;
	unsigned long i_ino;
};
typedef struct {
	atomic64_t refcnt;
} file_ref_t;
struct file {
	file_ref_t f_ref;
	atomic64_t f_count;
	struct path f_path;
	struct inode *f_inode;
	void *private_data;
	unsigned int f_flags;
};
struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};
struct files_struct {
	struct fdtable *fdt;
};
struct thread_info {
	u32 status;
};
struct pt_regs {
	unsigned long r10;
	unsigned long dx;
	unsigned long si;
	unsigned long di;
	unsigned long orig_ax;
};
struct mm_struct {
	struct file *exe_file;
};
struct signal_struct {
	int nr_threads;
};
typedef struct cpumask cpumask_t;
struct task_struct {
	struct signal_struct *signal;
	struct thread_info thread_info;
	int pid;
	struct mm_struct *mm;
	struct files_struct *files;
	struct task_struct *group_leader;
	/* What sched_setaffinity(2) was last told; NULL where it was not called (Linux 5.15). */
	cpumask_t *user_cpus_ptr;
};

struct seq_file {
	unsigned long count;
};
struct bpf_map {
	u32 id;
};
struct bpf_iter_meta {
	struct seq_file *seq;
	u64 session_id;
	u64 seq_num;
};
struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};
struct bpf_iter__bpf_sk_storage_map {
	union {
		struct bpf_iter_meta *meta;
		u64 : 64;
	} __attribute__((aligned(8)));
	union {
		struct bpf_map *map;
		u64 : 64;
	} __attribute__((aligned(8)));
	union {
		struct sock *sk;
		u64 : 64;
	} __attribute__((aligned(8)));
	union {
		void *value;
		u64 : 64;
	} __attribute__((aligned(8)));
};

#pragma clang attribute pop

/* Where a socket keeps what it has in a map of sockets: the lower bits of the pointer are marks
 * (SK_USER_DATA_PTRMASK of include/net/sock.h). */
#define SOCK_DATA_POINTER(value) ((value) & ~7ULL)
