//! Every hook, and the point that it stamps.
use super::{Attachment, Hook};
use hopscope_event::slice::Point;

/// A tracepoint, with types and as bare words.
macro_rules! tracepoint {
    ($name:literal, $point:ident) => {
        tracepoint!($name, $point, true, true)
    };
    ($name:literal, $point:ident, $stamps:literal, $tcp:literal) => {
        [
            Hook {
                program: concat!("tp_", $name),
                name: concat!("tp_btf/", $name),
                kind: Attachment::Tracepoint($name),
                point: Point::$point,
                stamps: $stamps,
                serves_tcp: $tcp,
            },
            Hook {
                program: concat!("raw_", $name),
                name: concat!("raw_tp/", $name),
                kind: Attachment::RawTracepoint($name),
                point: Point::$point,
                stamps: $stamps,
                serves_tcp: $tcp,
            },
        ]
    };
}

macro_rules! function {
    ($at:literal, $name:literal, $point:ident) => {
        function!($at, $name, $point, true)
    };
    ($at:literal, $name:literal, $point:ident, $tcp:literal) => {
        Hook {
            program: concat!("fn_", $name),
            name: concat!($at, "/", $name),
            kind: Attachment::Function($name),
            point: Point::$point,
            stamps: true,
            serves_tcp: $tcp,
        }
    };
}

const fn cgroup(program: &'static str, name: &'static str, point: Point) -> Hook {
    Hook {
        program,
        name,
        kind: Attachment::Cgroup,
        point,
        stamps: true,
        serves_tcp: true,
    }
}

const TRACEPOINTS: &[[Hook; 2]] = &[
    tracepoint!("sys_enter", TxSyscall),
    tracepoint!("tcp_sendmsg_locked", TxTransport),
    tracepoint!("net_dev_queue", TxDevQueue),
    tracepoint!("qdisc_enqueue", TxQdiscEnqueue),
    tracepoint!("qdisc_dequeue", TxQdiscDequeue),
    // Attached before the hook of the driver's start: no packet is begun there whose end is missed.
    tracepoint!("net_dev_xmit", TxDone),
    tracepoint!("net_dev_start_xmit", TxDriver),
    tracepoint!("netif_rx_entry", RxDriver),
    tracepoint!("napi_gro_receive_entry", RxDriver),
    tracepoint!("netif_receive_skb_entry", RxDriver),
    tracepoint!("netif_receive_skb", RxCore),
    tracepoint!("tcp_probe", RxTransport),
    tracepoint!("sk_data_ready", RxSocket),
    tracepoint!("sched_waking", RxWaking),
    tracepoint!("sched_switch", RxSchedIn),
    tracepoint!("skb_copy_datagram_iovec", RxCopy),
    tracepoint!("tcp_rcv_space_adjust", RxCopied),
    // These two end the packets of UDP, and those that the kernel itself receives.
    tracepoint!("sock_recv_length", RxCopied, true, false),
    tracepoint!("consume_skb", RxCopied, true, false),
    tracepoint!("sock_recv_length", RxReceived),
    tracepoint!("sys_exit", RxReturn),
];

const OTHERS: &[Hook] = &[
    cgroup("cgroup_egress", "cgroup_skb/egress", Point::TxIpOut),
    cgroup("cgroup_ingress", "cgroup_skb/ingress", Point::RxIp),
    function!("fentry", "tcp_sendmsg_locked", TxTransport),
    function!("fentry", "udp_sendmsg", TxTransport, false),
    function!("fentry", "udpv6_sendmsg", TxTransport, false),
    function!("fentry", "ip_finish_output", TxIpOut),
    function!("fentry", "ip6_finish_output", TxIpOut),
    function!("fentry", "sk_filter_trim_cap", RxIp),
    function!("fentry", "sock_def_readable", RxSocket),
    function!("fexit", "inet_recvmsg", RxReceived),
    function!("fexit", "inet6_recvmsg", RxReceived),
];

/// End the record of a packet that the kernel gives up.
const DROPS: [Hook; 2] = tracepoint!("kfree_skb", RxReturn, false, true);

/// Programs of the hook that tells of finished receive calls.
pub(in super::super) const PER_CALL: [&str; 2] = ["tp_sock_recv_length", "raw_sock_recv_length"];

/// Hooks of one backend are used together for a point.
pub(in super::super) fn all() -> impl Iterator<Item = Hook> {
    let tracepoints = TRACEPOINTS.iter().chain([&DROPS]).flatten();
    tracepoints.chain(OTHERS).copied()
}
