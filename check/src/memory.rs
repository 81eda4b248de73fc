//! May we put code into a process?
use crate::capability::{Capability, Verdict};
use crate::child::{Trial, TrialChild};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::ptrace;
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};

pub(crate) fn capabilities() -> Vec<Capability> {
    vec![proc_mem(), memfd_exec(), shadow_stack()]
}

fn proc_mem() -> Capability {
    let verdict = match try_proc_mem() {
        Ok(how) => Verdict::ok(how),
        Err(step) => Verdict::missing(
            step,
            "boot with proc_mem.force_override=ptrace (or always) on the kernel command line",
        ),
    };
    let purpose = "writing probes over the first bytes of functions";
    Capability::new("proc-mem-write", purpose, "tried", verdict).needed()
}

/// Writes back the byte that is there: code pages are read-only, so this needs the forced write
/// that a kernel may forbid.
fn try_proc_mem() -> Result<&'static str, String> {
    let child = TrialChild::start(Trial::Wait).map_err(|e| format!("starting a child: {e}"))?;
    let pid = Pid::from_raw(child.pid());
    let traced = |e: nix::Error| format!("tracing a child: {e}");
    ptrace::seize(pid, ptrace::Options::empty()).map_err(traced)?;
    ptrace::interrupt(pid).map_err(traced)?;
    waitpid(pid, None).map_err(traced)?;
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).map_err(|e| e.to_string())?;
    let code = maps
        .lines()
        .find(|line| line.contains(" r-xp ") && line.contains('/'))
        .and_then(|line| line.split('-').next())
        .and_then(|start| u64::from_str_radix(start, 16).ok())
        .ok_or("the child has no code mapping")?;
    let mem = File::options()
        .read(true)
        .write(true)
        .open(format!("/proc/{pid}/mem"))
        .map_err(|e| format!("opening /proc/PID/mem: {e}"))?;
    let mut byte = [0];
    mem.read_exact_at(&mut byte, code)
        .map_err(|e| format!("reading code: {e}"))?;
    if mem.write_all_at(&byte, code).is_ok() {
        return Ok("rewrote a byte of a traced child's code");
    }
    let at = code as ptrace::AddressType;
    let poked = ptrace::read(pid, at).and_then(|word| ptrace::write(pid, at, word));
    match poked {
        Ok(()) => Ok("by PTRACE_POKEDATA only (proc_mem.force_override=never): pauses are longer"),
        Err(e) => Err(format!("writing code: {e}")),
    }
}

fn memfd_exec() -> Capability {
    let verdict = match try_memfd() {
        Ok(Mapped::Yes) => Verdict::ok("a memfd was mapped executable"),
        Ok(Mapped::NotTried(why)) => Verdict::unknown(why, "record and see"),
        Err(step) => Verdict::missing(
            step,
            "sysctl vm.memfd_noexec=0, or a security module that allows executable memfds",
        ),
    };
    let purpose = "the relocated functions' code and the rings, shared with the recorder";
    Capability::new("memfd-exec", purpose, "tried through the loader", verdict).needed()
}

enum Mapped {
    Yes,
    NotTried(String),
}

/// The dynamic loader maps the code of what it is asked to verify; here: a copy of ourselves.
fn try_memfd() -> Result<Mapped, String> {
    let fd = memfd_create(c"hopscope-check", MFdFlags::MFD_CLOEXEC)
        .map_err(|e| format!("memfd_create: {e}"))?;
    let mut file = File::from(fd);
    let own = std::fs::read("/proc/self/exe").map_err(|e| format!("reading ourselves: {e}"))?;
    file.write_all(&own)
        .map_err(|e| format!("writing the memfd: {e}"))?;
    let Some(loader) = loader() else {
        return Ok(Mapped::NotTried("no dynamic loader in our maps".into()));
    };
    let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    let out = Command::new(&loader)
        .args(["--verify", &path])
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("starting {loader}: {e}"))?;
    if out.status.success() {
        Ok(Mapped::Yes)
    } else {
        Err(format!("mapping a memfd executable: {}", out.status))
    }
}

fn loader() -> Option<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines()
        .filter_map(|line| line.find('/').map(|at| &line[at..]))
        .find(|path| path.contains("/ld-linux") || path.contains("/ld-musl"))
        .map(str::to_string)
}

/// Calls and returns of a measured function stay paired, so either answer is fine; it is listed
/// for those who look for the cause of a fault.
fn shadow_stack() -> Capability {
    let verdict = match crate::privilege::status_field("x86_Thread_features") {
        Some(features) if features.contains("shstk") => Verdict::ok("on in this process"),
        Some(_) => Verdict::ok("off in this process"),
        None => Verdict::ok("not in this kernel"),
    };
    Capability::new(
        "shadow-stack",
        "information only: measured calls and returns stay paired",
        "/proc/self/status",
        verdict,
    )
}
