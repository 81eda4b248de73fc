//! Which BPF programs the kernel cannot run, by its configuration: nothing is loaded here.
use super::kernel::option;
use super::{Capability, Verdict};

const SLICES: &str = "slices of the kernel's own path of a packet (not in this version)";
const PATHS: &str = "faster paths between sockets (not in this version)";

pub(super) fn capabilities() -> Vec<Capability> {
    let base = ["CONFIG_BPF_SYSCALL", "CONFIG_BPF_JIT"];
    let types: [(&str, &str, &[&str]); 6] = [
        (
            "bpf-fentry",
            SLICES,
            &[
                "CONFIG_DEBUG_INFO_BTF",
                "CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS",
                "CONFIG_BPF_EVENTS",
            ],
        ),
        (
            "bpf-kprobe",
            SLICES,
            &["CONFIG_KPROBES", "CONFIG_BPF_EVENTS"],
        ),
        (
            "bpf-raw-tracepoint",
            SLICES,
            &["CONFIG_TRACEPOINTS", "CONFIG_BPF_EVENTS"],
        ),
        ("bpf-cgroup", SLICES, &["CONFIG_CGROUP_BPF"]),
        ("bpf-sockmap", PATHS, &["CONFIG_BPF_STREAM_PARSER"]),
        ("bpf-xdp", PATHS, &["CONFIG_XDP_SOCKETS"]),
    ];
    types
        .into_iter()
        .map(|(name, purpose, options)| {
            let wanted: Vec<&str> = base.iter().chain(options).copied().collect();
            Capability::new(name, purpose, "kernel configuration", verdict(&wanted))
        })
        .collect()
}

/// The configuration can only rule a type out: lockdown, a security module or the virtual machine
/// may still refuse to load or attach it, and trying that is not harmless.
fn verdict(wanted: &[&str]) -> Verdict {
    let mut lacking = Vec::new();
    for name in wanted {
        match option(name) {
            Ok(true) => {}
            Ok(false) => lacking.push(*name),
            Err(why) => return Verdict::unknown(why, "install the kernel's configuration file"),
        }
    }
    match lacking.is_empty() {
        true => Verdict::unknown(
            format!("built with {}; not loaded", wanted.join(" ")),
            "`bpftool feature probe kernel` loads one of each type",
        ),
        false => Verdict::missing(
            format!("built without {}", lacking.join(" ")),
            "a kernel built with these",
        ),
    }
}
