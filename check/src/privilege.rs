//! May we trace, and what privileges have we?
use crate::capability::{Capability, Verdict};
use crate::child::{Trial, TrialChild};
use nix::sys::ptrace;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

// linux/capability.h
const CAP_SYS_PTRACE: u32 = 19;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

pub(crate) fn capabilities() -> Vec<Capability> {
    vec![
        ptrace_trial(),
        yama(),
        privilege(
            "cap-sys-ptrace",
            CAP_SYS_PTRACE,
            "measuring processes of other users",
        ),
        privilege(
            "cap-sys-admin",
            CAP_SYS_ADMIN,
            "network namespaces, and lifting a target's seccomp filter while attaching",
        ),
        privilege("cap-bpf", CAP_BPF, "loading BPF programs"),
        privilege(
            "cap-perfmon",
            CAP_PERFMON,
            "hardware counters of other users' processes",
        ),
        seccomp(),
    ]
}

/// The tracer must be the thread that seized, so all of it happens here.
fn ptrace_trial() -> Capability {
    let verdict = match try_ptrace() {
        Ok(()) => Verdict::ok("seized, stopped and released a child"),
        Err(step) => Verdict::missing(
            step,
            "a kernel and container that allow ptrace (docker: --cap-add SYS_PTRACE)",
        ),
    };
    Capability::new("ptrace", "attaching to a process", "tried", verdict).needed()
}

fn try_ptrace() -> Result<(), String> {
    let child = TrialChild::start(Trial::Wait).map_err(|e| format!("starting a child: {e}"))?;
    let pid = Pid::from_raw(child.pid());
    let step = |name: &str, e: nix::Error| format!("{name}: {e}");
    ptrace::seize(pid, ptrace::Options::empty()).map_err(|e| step("PTRACE_SEIZE", e))?;
    ptrace::interrupt(pid).map_err(|e| step("PTRACE_INTERRUPT", e))?;
    match waitpid(pid, None).map_err(|e| step("waitpid", e))? {
        WaitStatus::PtraceEvent(..) => {}
        other => return Err(format!("the child did not stop: {other:?}")),
    }
    ptrace::getregs(pid).map_err(|e| step("PTRACE_GETREGS", e))?;
    ptrace::detach(pid, None).map_err(|e| step("PTRACE_DETACH", e))
}

fn yama() -> Capability {
    let privileged = effective().is_some_and(|caps| has(caps, CAP_SYS_PTRACE));
    let path = "/proc/sys/kernel/yama/ptrace_scope";
    let lower = "sysctl kernel.yama.ptrace_scope=0, or run as root";
    let verdict = match crate::system::read_trimmed(path).as_deref() {
        Err(_) => Verdict::ok("no Yama in this kernel"),
        Ok("0") => Verdict::ok("ptrace_scope 0: any own process"),
        Ok(scope @ ("1" | "2")) if privileged => {
            Verdict::ok(format!("ptrace_scope {scope}, lifted by CAP_SYS_PTRACE"))
        }
        Ok("1") => Verdict::missing(
            "ptrace_scope 1: only children of hopscope itself",
            format!("hopscope record -- COMMAND, or {lower}"),
        ),
        Ok("2") => Verdict::missing("ptrace_scope 2: only with CAP_SYS_PTRACE", lower),
        Ok("3") => Verdict::missing("ptrace_scope 3: disabled until reboot", "boot without it"),
        Ok(other) => Verdict::unknown(format!("ptrace_scope {other}"), lower),
    };
    Capability::new("yama", "attaching to a running process", path, verdict)
}

fn privilege(name: &'static str, bit: u32, purpose: &'static str) -> Capability {
    let verdict = match effective() {
        None => Verdict::unknown("no CapEff in /proc/self/status", "mount /proc"),
        Some(caps) if has(caps, bit) => Verdict::ok("effective"),
        // Since Linux 5.8 CAP_SYS_ADMIN includes the two that were split from it.
        Some(caps) if (bit == CAP_BPF || bit == CAP_PERFMON) && has(caps, CAP_SYS_ADMIN) => {
            Verdict::ok("through CAP_SYS_ADMIN")
        }
        Some(_) => Verdict::missing("not effective", "run as root, or setcap on the binary"),
    };
    Capability::new(name, purpose, "/proc/self/status", verdict)
}

fn seccomp() -> Capability {
    let verdict = match status_field("Seccomp").as_deref() {
        Some("0") => Verdict::ok("no filter on hopscope itself"),
        Some(mode) => Verdict::missing(
            format!("mode {mode}: a filter is on hopscope itself"),
            "a container with --security-opt seccomp=unconfined, where something above fails",
        ),
        None => Verdict::unknown("no Seccomp in /proc/self/status", "mount /proc"),
    };
    Capability::new(
        "no-seccomp",
        "ptrace, memfd_create and perf_event_open reach the kernel",
        "/proc/self/status",
        verdict,
    )
}

fn effective() -> Option<u64> {
    u64::from_str_radix(&status_field("CapEff")?, 16).ok()
}

pub(crate) fn has_admin() -> bool {
    effective().is_some_and(|caps| has(caps, CAP_SYS_ADMIN))
}

pub(crate) fn has_bpf() -> bool {
    has_admin() || effective().is_some_and(|caps| has(caps, CAP_BPF))
}

pub(crate) fn has_perfmon() -> bool {
    has_admin() || effective().is_some_and(|caps| has(caps, CAP_PERFMON))
}

fn has(caps: u64, bit: u32) -> bool {
    caps >> bit & 1 == 1
}

pub(crate) fn status_field(name: &str) -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key == name).then(|| value.trim().to_string())
    })
}
