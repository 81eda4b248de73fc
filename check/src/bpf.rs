//! Which BPF programs this kernel runs. The kinds of hooks that slices need are tried: a program that
//! does nothing is loaded, attached for a moment, and taken away. Types that nothing here uses yet
//! are only looked up in the kernel's configuration.
use crate::capability::{Capability, Verdict};
use crate::kernel::option;
use crate::privilege;
use hopscope_slice::kinds::{HookKind, KindError, try_kind};

const SOCKETS: &str = "sockmap: `splice` (`hopscope check splice` tests it in depth)";
const PACKETS: &str = "packet ports past the stack (`load packets` with xdp)";

pub(crate) fn capabilities() -> Vec<Capability> {
    let tried = HookKind::ALL.into_iter().map(hook);
    let base = ["CONFIG_BPF_SYSCALL", "CONFIG_BPF_JIT"];
    let types = [
        ("bpf-sockmap", "CONFIG_BPF_STREAM_PARSER", SOCKETS),
        ("bpf-xdp", "CONFIG_XDP_SOCKETS", PACKETS),
    ];
    let configured = types.into_iter().map(|(name, option, purpose)| {
        let wanted = [base[0], base[1], option];
        Capability::new(name, purpose, "kernel configuration", configured(&wanted))
    });
    tried.chain(configured).collect()
}

fn hook(kind: HookKind) -> Capability {
    let (name, purpose, remedy) = match kind {
        HookKind::TpBtf => (
            "bpf-tracepoint",
            "slices of the kernel's own path of a packet (backend tracepoint)",
            "Linux 5.5 with CONFIG_DEBUG_INFO_BTF and CONFIG_BPF_EVENTS",
        ),
        HookKind::RawTp => (
            "bpf-raw-tracepoint",
            "slices where tracepoints have no types (backend raw)",
            "a kernel with CONFIG_TRACEPOINTS and CONFIG_BPF_EVENTS",
        ),
        HookKind::Fentry => (
            "bpf-fentry",
            "slices at functions, where a kernel lacks a tracepoint (backend fentry)",
            FUNCTIONS,
        ),
        HookKind::Fexit => (
            "bpf-fexit",
            "slices up to a function's return (backend fentry)",
            FUNCTIONS,
        ),
        HookKind::Kprobe => (
            "bpf-kprobe",
            "functions that fentry cannot reach (no backend uses it)",
            "a kernel with CONFIG_KPROBES and CONFIG_BPF_EVENTS, and tracefs mounted",
        ),
        HookKind::CgroupSkb => (
            "bpf-cgroup",
            "slices at IP's output, and where the socket is found",
            "a kernel with CONFIG_CGROUP_BPF, and cgroup2 mounted",
        ),
        HookKind::Sockops => (
            "bpf-sockops",
            "what TCP itself says of a connection (no backend uses it)",
            "a kernel with CONFIG_CGROUP_BPF, and cgroup2 mounted",
        ),
    };
    let verdict = match try_kind(kind) {
        Ok(()) => Verdict::ok("loaded and attached one"),
        Err(error @ (KindError::Object(_) | KindError::Cgroup { .. })) => {
            Verdict::unknown(error.to_string(), remedy)
        }
        // Without the privilege every kind is refused, and what the kernel has cannot be seen.
        Err(error) if !privilege::has_bpf() => Verdict::missing(error.to_string(), PRIVILEGES),
        Err(error) => Verdict::missing(error.to_string(), remedy),
    };
    Capability::new(name, purpose, "tried", verdict)
}

const FUNCTIONS: &str = "a kernel with CONFIG_DEBUG_INFO_BTF, CONFIG_BPF_EVENTS and \
    CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS, whose text may be rewritten";
const PRIVILEGES: &str = "run as root, or with CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN";

/// The configuration can only rule a type out.
fn configured(wanted: &[&str]) -> Verdict {
    let mut lacking = Vec::new();
    for name in wanted {
        match option(name) {
            Ok(true) => {}
            Ok(false) => lacking.push(*name),
            Err(why) => return Verdict::unknown(why, "install the kernel's configuration file"),
        }
    }
    if lacking.is_empty() {
        Verdict::unknown(
            format!("built with {}; not loaded", wanted.join(" ")),
            "`bpftool feature probe kernel` loads one of each type",
        )
    } else {
        Verdict::missing(
            format!("built without {}", lacking.join(" ")),
            "a kernel built with these",
        )
    }
}
