/* Types of the kernel and of its interface for programs, as far as ours read them. Kernel structures are relocated by
 * CO-RE against the running kernel: only names and types of members count, not their order or offsets. Contexts
 * (include/uapi/linux/bpf.h) are ABI and have its layout. */
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

/* ---- include/uapi/linux/bpf.h ---- */

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERF_EVENT_ARRAY = 4,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_SOCKHASH = 18,
	BPF_MAP_TYPE_SK_STORAGE = 24,
	BPF_MAP_TYPE_RINGBUF = 27,
};
enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_F_CURRENT_CPU = 0xffffffffULL,
	BPF_F_NO_PREALLOC = 1U << 0,
	BPF_F_MMAPABLE = 1U << 10,
	BPF_F_INGRESS = 1ULL << 0,
	BPF_RB_NO_WAKEUP = 1ULL << 0,
	BPF_RB_AVAIL_DATA = 0,
	BPF_SK_STORAGE_GET_F_CREATE = 1ULL << 0,
};
enum sk_action {
	SK_DROP = 0,
	SK_PASS = 1,
};

/* What a sockops program is called for. */
enum {
	BPF_SOCK_OPS_RWND_INIT = 2,
	BPF_SOCK_OPS_TCP_CONNECT_CB = 3,
	BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB = 4,
	BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB = 5,
	BPF_SOCK_OPS_STATE_CB = 10,
	BPF_SOCK_OPS_TCP_LISTEN_CB = 11,
	BPF_SOCK_OPS_STATE_CB_FLAG = 1 << 2,
};

struct bpf_pidns_info {
	__u32 pid;
	__u32 tgid;
};
struct bpf_perf_event_value {
	__u64 counter, enabled, running;
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
	CTX_POINTER(void *, flow_keys);
	__u64 tstamp;
	__u32 wire_len;
	__u32 gso_segs;
	CTX_POINTER(struct bpf_sock *, sk);
};

/* ---- constants of other headers ---- */

/* include/linux/socket.h */
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
	TCP_LAST_ACK = 9,
	TCP_LISTEN = 10,
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

/* ---- structures of the kernel ---- */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	s64 counter;
} atomic64_t;
typedef struct {
	int counter;
} atomic_t;
typedef struct {
	s64 counter;
} atomic_long_t;
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
struct mutex {
	atomic_long_t owner;
};
struct wait_queue_head {
	struct list_head head;
};
struct wait_queue_entry {
	void *private;
	struct list_head entry;
};

struct ns_common {
	unsigned int inum;
};
struct net {
	u64 net_cookie;
	struct ns_common ns;
};
typedef struct {
	struct net *net;
} possible_net_t;

struct in6_addr {
	union {
		__u8 u6_addr8[16];
	} in6_u;
};

enum sock_flags {
	SOCK_RCVTSTAMP = 13,
};
struct proto {
	atomic64_t *memory_allocated;
	long *sysctl_mem;
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
	unsigned long skc_flags;
	struct proto *skc_prot;
	possible_net_t skc_net;
	atomic64_t skc_cookie;
};
struct pid_namespace;
struct upid {
	int nr;
	struct pid_namespace *ns;
};
struct pid {
	unsigned int level;
	struct upid numbers[1];
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
struct socket_wq {
	struct wait_queue_head wait;
};
struct sk_buff_head {
	__u32 qlen;
};
struct sk_filter;
struct socket;
struct net_device;
struct dst_entry {
	struct net_device *dev;
};
struct sock {
	struct sock_common __sk_common;
	struct dst_entry *sk_dst_cache;
	struct sk_buff_head sk_receive_queue;
	struct socket_wq *sk_wq;
	int sk_rcvbuf;
	int sk_sndbuf;
	void *sk_user_data;
	struct socket *sk_socket;
	u8 sk_shutdown;
	u16 sk_protocol;
	int sk_err;
	kuid_t sk_uid;
	int sk_rcvlowat;
	int sk_peek_off;
	u32 sk_tsflags;
	struct sk_filter *sk_filter;
	struct pid *sk_peer_pid;
	socket_lock_t sk_lock;
	struct mem_cgroup *sk_memcg;
};
struct unix_address;
struct unix_sock {
	struct unix_address *addr;
	struct sock *peer;
};
struct udp_sock {
	struct sk_buff_head reader_queue;
};
struct tcp_sock {
	u32 write_seq;
	u32 snd_nxt;
	u32 snd_una;
	u32 copied_seq;
	u32 rcv_nxt;
	u16 urg_data;
	u32 urg_seq;
	u8 recvmsg_inq : 1;
	u8 nonagle : 4;
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
	char cb[48];
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
struct tcp_skb_cb {
	__u32 seq;
	__u32 end_seq;
};
/* Before Linux 6.4 a packet that is delivered in pieces waits here and no longer in the queue. */
struct sk_psock_work_state {
	struct sk_buff *skb;
};
struct sk_psock {
	struct list_head ingress_msg;
	u32 msg_tot_len;
	struct refcount_struct refcnt;
	struct sk_buff_head ingress_skb;
	struct sk_psock_work_state work_state;
	struct mutex work_mutex;
	void (*saved_data_ready)(struct sock *sk);
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
struct fown_struct {
	struct pid *pid;
};
struct file {
	/* Since Linux 6.13, and before. */
	file_ref_t f_ref;
	atomic64_t f_count;
	struct path f_path;
	struct inode *f_inode;
	void *private_data;
	unsigned int f_flags;
	/* Since Linux 6.12. */
	struct fown_struct *f_owner;
};
/* Before. */
struct file___owner_within {
	struct fown_struct f_owner;
};
struct reference_count {
	long counter;
};
/* The same two as one word each, to be read from a file that may be gone. */
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
struct thread_info {
	u32 status;
};
struct mm_struct {
	struct file *exe_file;
};
struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_pgoff;
	struct file *vm_file;
};
struct signal_struct {
	/* Threads that have not begun to end. */
	atomic_t live;
	int nr_threads;
};
typedef struct cpumask cpumask_t;
struct task_struct {
	int pid;
	int tgid;
	/* At a multiple of 8, here as in kernels: clang copies it by words of that size. */
	char comm[16];
	struct signal_struct *signal;
	struct thread_info thread_info;
	void *stack;
	struct mm_struct *mm;
	struct files_struct *files;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	/* NULL where this thread neither made an io_uring nor used one. */
	void *io_uring;
	/* What sched_setaffinity(2) was last told; NULL where it was not called (Linux 5.15). */
	cpumask_t *user_cpus_ptr;
};
struct pt_regs {
	unsigned long bx;
	unsigned long r10;
	unsigned long dx;
	unsigned long si;
	unsigned long di;
	unsigned long orig_ax;
	unsigned long ip;
	unsigned long sp;
};
/* Any kernel structure that begins with a 64-bit number: what raw bytes are read through. */
struct timespec64 {
	s64 tv_sec;
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
struct bpf_iter__tcp {
	CTX_POINTER(struct bpf_iter_meta *, meta);
	CTX_POINTER(struct sock_common *, sk_common);
};

struct bpf_iter__bpf_sk_storage_map {
	CTX_POINTER(struct bpf_iter_meta *, meta);
	CTX_POINTER(struct bpf_map *, map);
	CTX_POINTER(struct sock *, sk);
	CTX_POINTER(void *, value);
};

#pragma clang attribute pop

/* Where a socket keeps what it has in a map of sockets: the lower bits of the pointer are marks
 * (SK_USER_DATA_PTRMASK of include/net/sock.h). */
#define SOCK_DATA_POINTER(value) ((value) & ~7ULL)
