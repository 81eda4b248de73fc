//! Which hooks can stamp which point, and which of them this kernel has.
use super::{LoadError, Options};
use crate::kinds::{HookKind, try_kind};
use hopscope_event::slice::Point;
use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{Func, Typedef};
use std::fmt;
use std::str::FromStr;

/// How a hook is reached, from the richest to the poorest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Backend {
    /// Function entries and exits, by rewriting the kernel's text; tracepoints where there is none.
    Fentry,
    /// Tracepoints with types, and the socket filters of control groups.
    Tracepoint,
    /// Tracepoints whose arguments have no types.
    Raw,
}

impl Backend {
    pub const fn name(self) -> &'static str {
        match self {
            Backend::Fentry => "fentry",
            Backend::Tracepoint => "tracepoint",
            Backend::Raw => "raw",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Backend {
    type Err = String;
    fn from_str(name: &str) -> Result<Backend, String> {
        [Backend::Fentry, Backend::Tracepoint, Backend::Raw]
            .into_iter()
            .find(|backend| backend.name() == name)
            .ok_or_else(|| format!("no backend is called `{name}`: fentry, tracepoint, raw"))
    }
}

/// One program and the hook it goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hook {
    /// Of the program in the object.
    pub program: &'static str,
    /// As people name it: `tp_btf/net_dev_queue`.
    pub name: &'static str,
    pub kind: Kind,
    pub point: Point,
    /// A hook is not used where a better one of its group is.
    pub group: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Tracepoint of this name.
    Tracepoint(&'static str),
    /// Entry or return of the function of this name.
    Function(&'static str),
    Cgroup,
}

impl Hook {
    /// The poorest backend that has it.
    pub const fn backend(&self) -> Backend {
        match self.kind {
            Kind::Function(_) => Backend::Fentry,
            Kind::Tracepoint(_) | Kind::Cgroup => Backend::Tracepoint,
        }
    }
}

const fn tp(program: &'static str, name: &'static str, point: Point, group: u8) -> Hook {
    // "tp_btf/"
    let (_, bare) = name.as_bytes().split_at(7);
    let Ok(bare) = std::str::from_utf8(bare) else {
        panic!("hook names are ASCII")
    };
    Hook {
        program,
        name,
        kind: Kind::Tracepoint(bare),
        point,
        group,
    }
}

const fn cgroup(program: &'static str, name: &'static str, point: Point) -> Hook {
    Hook {
        program,
        name,
        kind: Kind::Cgroup,
        point,
        group: 0,
    }
}

const fn function(
    program: &'static str,
    name: &'static str,
    of: &'static str,
    point: Point,
    group: u8,
) -> Hook {
    Hook {
        program,
        name,
        kind: Kind::Function(of),
        point,
        group,
    }
}

/// Tells of every finished receive call; ends UDP's packets, too.
pub(super) const PER_CALL: &str = "tp_sock_recv_length";

/// In each point's list, hooks of one group exclude each other, the first that is there is used;
/// hooks of different groups are used together. Hooks of one backend only are used for a point.
pub const HOOKS: &[Hook] = &[
    tp("tp_sys_enter", "tp_btf/sys_enter", Point::TxSyscall, 0),
    tp(
        "tp_tcp_sendmsg_locked",
        "tp_btf/tcp_sendmsg_locked",
        Point::TxTransport,
        0,
    ),
    cgroup("cgroup_egress", "cgroup_skb/egress", Point::TxIpOut),
    tp(
        "tp_net_dev_queue",
        "tp_btf/net_dev_queue",
        Point::TxDevQueue,
        0,
    ),
    tp(
        "tp_qdisc_enqueue",
        "tp_btf/qdisc_enqueue",
        Point::TxQdiscEnqueue,
        0,
    ),
    tp(
        "tp_qdisc_dequeue",
        "tp_btf/qdisc_dequeue",
        Point::TxQdiscDequeue,
        0,
    ),
    tp("tp_net_dev_xmit", "tp_btf/net_dev_xmit", Point::TxDone, 0),
    tp(
        "tp_net_dev_start_xmit",
        "tp_btf/net_dev_start_xmit",
        Point::TxDriver,
        0,
    ),
    tp(
        "tp_netif_rx_entry",
        "tp_btf/netif_rx_entry",
        Point::RxDriver,
        0,
    ),
    tp(
        "tp_napi_gro_receive_entry",
        "tp_btf/napi_gro_receive_entry",
        Point::RxDriver,
        1,
    ),
    tp(
        "tp_netif_receive_skb_entry",
        "tp_btf/netif_receive_skb_entry",
        Point::RxDriver,
        2,
    ),
    tp(
        "tp_netif_receive_skb",
        "tp_btf/netif_receive_skb",
        Point::RxCore,
        0,
    ),
    cgroup("cgroup_ingress", "cgroup_skb/ingress", Point::RxIp),
    tp("tp_tcp_probe", "tp_btf/tcp_probe", Point::RxTransport, 0),
    tp(
        "tp_sk_data_ready",
        "tp_btf/sk_data_ready",
        Point::RxSocket,
        0,
    ),
    tp("tp_sched_waking", "tp_btf/sched_waking", Point::RxWaking, 0),
    tp(
        "tp_sched_switch",
        "tp_btf/sched_switch",
        Point::RxSchedIn,
        0,
    ),
    tp(
        "tp_skb_copy_datagram_iovec",
        "tp_btf/skb_copy_datagram_iovec",
        Point::RxCopy,
        0,
    ),
    tp(
        "tp_tcp_rcv_space_adjust",
        "tp_btf/tcp_rcv_space_adjust",
        Point::RxCopied,
        0,
    ),
    tp(PER_CALL, "tp_btf/sock_recv_length", Point::RxCopied, 1),
    tp("tp_consume_skb", "tp_btf/consume_skb", Point::RxCopied, 2),
    tp(PER_CALL, "tp_btf/sock_recv_length", Point::RxReceived, 0),
    tp("tp_sys_exit", "tp_btf/sys_exit", Point::RxReturn, 0),
    function(
        "fn_tcp_sendmsg_locked",
        "fentry/tcp_sendmsg_locked",
        "tcp_sendmsg_locked",
        Point::TxTransport,
        0,
    ),
    function(
        "fn_udp_sendmsg",
        "fentry/udp_sendmsg",
        "udp_sendmsg",
        Point::TxTransport,
        1,
    ),
    function(
        "fn_udpv6_sendmsg",
        "fentry/udpv6_sendmsg",
        "udpv6_sendmsg",
        Point::TxTransport,
        2,
    ),
    function(
        "fn_ip_finish_output",
        "fentry/ip_finish_output",
        "ip_finish_output",
        Point::TxIpOut,
        0,
    ),
    function(
        "fn_ip6_finish_output",
        "fentry/ip6_finish_output",
        "ip6_finish_output",
        Point::TxIpOut,
        1,
    ),
    function(
        "fn_sk_filter_trim_cap",
        "fentry/sk_filter_trim_cap",
        "sk_filter_trim_cap",
        Point::RxIp,
        0,
    ),
    function(
        "fn_sock_def_readable",
        "fentry/sock_def_readable",
        "sock_def_readable",
        Point::RxSocket,
        0,
    ),
    function(
        "fn_inet_recvmsg",
        "fexit/inet_recvmsg",
        "inet_recvmsg",
        Point::RxReceived,
        0,
    ),
    function(
        "fn_inet6_recvmsg",
        "fexit/inet6_recvmsg",
        "inet6_recvmsg",
        Point::RxReceived,
        1,
    ),
];

/// Not of a point: ends the record of a packet that the kernel gives up.
pub(super) const DROP: Hook = tp("tp_kfree_skb", "tp_btf/kfree_skb", Point::RxReturn, 9);

/// A hook, and why it cannot be used here (`None`: it can).
#[derive(Debug, Clone)]
pub struct Offer {
    pub hook: Hook,
    pub missing: Option<String>,
}

/// The functions that a program needs from the kernel.
const KFUNC_CGROUP: &str = "bpf_cast_to_kern_ctx";

/// What this kernel's type information says of every hook. Attaching may still fail.
///
/// # Errors
/// The kernel has no type information.
pub fn offers() -> Result<Vec<Offer>, LoadError> {
    let btf = Btf::from_vmlinux().map_err(|error| LoadError::NoBtf(error.to_string()))?;
    let no_functions = functions_refused();
    let all = HOOKS.iter().chain(std::iter::once(&DROP));
    Ok(all
        .map(|hook| {
            let refused = match hook.kind {
                Kind::Function(_) => no_functions.clone(),
                _ => None,
            };
            Offer {
                hook: *hook,
                missing: missing(&btf, hook).or(refused),
            }
        })
        .collect())
}

/// Type information names the functions of kernels, too, that let no program run at one.
fn functions_refused() -> Option<String> {
    [HookKind::Fentry, HookKind::Fexit]
        .into_iter()
        .find_map(|kind| {
            let error = try_kind(kind).err()?;
            Some(format!("no {} programs: {error}", kind.name()))
        })
}

/// Which hooks the options' backend would use: for each point those of the first backend that has one.
pub(super) fn choose(offers: &[Offer], options: &Options) -> Vec<Offer> {
    let order: &[Backend] = match options.backend {
        None => &[Backend::Tracepoint, Backend::Fentry],
        Some(Backend::Fentry) => &[Backend::Fentry, Backend::Tracepoint],
        Some(Backend::Tracepoint) => &[Backend::Tracepoint],
        Some(Backend::Raw) => &[Backend::Raw],
    };
    let mut chosen: Vec<Offer> = Vec::new();
    for point in &options.points {
        let of = |backend: &Backend| -> Vec<Offer> {
            let of_point = offers.iter().filter(|offer| {
                offer.hook.point == *point && offer.hook != DROP && offer.hook.backend() == *backend
            });
            of_point.cloned().collect()
        };
        let has_one = |offers: &Vec<Offer>| offers.iter().any(|offer| offer.missing.is_none());
        // Where there is none at all, the reasons of each.
        let best = order.iter().map(of).find(has_one);
        chosen.extend(best.unwrap_or_else(|| order.iter().flat_map(of).collect()));
    }
    chosen.extend(offers.iter().filter(|offer| offer.hook == DROP).cloned());
    chosen
}

fn missing(btf: &Btf<'_>, hook: &Hook) -> Option<String> {
    match hook.kind {
        Kind::Tracepoint(name) => {
            let there = btf
                .type_by_name::<Typedef<'_>>(&format!("btf_trace_{name}"))
                .is_some();
            (!there).then(|| format!("this kernel has no tracepoint {name}"))
        }
        Kind::Function(name) => {
            let there = btf.type_by_name::<Func<'_>>(name).is_some();
            (!there).then(|| format!("this kernel has no function {name}"))
        }
        Kind::Cgroup => {
            let there = btf.type_by_name::<Func<'_>>(KFUNC_CGROUP).is_some();
            (!there).then(|| format!("this kernel has no {KFUNC_CGROUP} (Linux 6.2)"))
        }
    }
}
