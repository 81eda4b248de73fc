//! Everything that can be known before a process is touched.
use super::AttachError;
use super::procfs::Status;
use super::seccomp;
use nix::libc;
use std::os::unix::fs::MetadataExt;
use std::{fs, io};

#[derive(Debug, Clone, Copy)]
pub struct Preflight {
    /// User shadow stacks are on.
    pub shadow_stack: bool,
}

/// AT_HWCAP2 bit 1: user code may use rdgsbase (arch/x86/include/uapi/asm/hwcap2.h).
const HWCAP2_FSGSBASE: u64 = 2;

pub fn preflight(pid: i32) -> Result<Preflight, AttachError> {
    if pid == std::process::id() as i32 {
        return Err(AttachError::Ourselves(pid));
    }
    let mut status = Status::read(pid, pid).map_err(|_| AttachError::NoSuchProcess(pid))?;
    // A thread id has a /proc entry too.
    if status.field("Tgid").and_then(|t| t.parse().ok()) != Some(pid) {
        return Err(AttachError::NoSuchProcess(pid));
    }
    if matches!(status.state(), 'Z' | 'X') && super::procfs::threads(pid).map_or(0, |t| t.len()) < 2
    {
        return Err(AttachError::Zombie(pid));
    }
    let holder = super::procfs::memory_holder(pid);
    if holder != pid {
        status = Status::read(pid, holder).map_err(|_| AttachError::NoSuchProcess(pid))?;
    }
    if status.field("Kthread") == Some("1") || status.field("VmSize").is_none() {
        return Err(AttachError::KernelThread(pid));
    }
    let tracer = status
        .field("TracerPid")
        .and_then(|t| t.parse().ok())
        .unwrap_or(0);
    if tracer != 0 {
        return Err(AttachError::traced_by(pid, tracer));
    }
    if fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(format!("/proc/{holder}/mem"))
        .is_err()
    {
        let uid = fs::metadata(format!("/proc/{pid}")).map_or(0, |m| m.uid());
        return Err(AttachError::NoPermission { pid, uid });
    }
    if hwcap2() & HWCAP2_FSGSBASE == 0 {
        return Err(AttachError::NoFsgsbase);
    }
    check_64_bit(pid)?;
    seccomp::refuse_strict(pid)?;
    if let Some(other) = lasting_sharer(pid) {
        return Err(AttachError::SharedMemory { pid, other });
    }
    let features = status.field("x86_Thread_features").unwrap_or_default();
    Ok(Preflight {
        shadow_stack: features.split(' ').any(|f| f == "shstk"),
    })
}

fn hwcap2() -> u64 {
    // SAFETY: getauxval has no preconditions.
    unsafe { libc::getauxval(libc::AT_HWCAP2) }
}

pub(crate) fn check_64_bit(pid: i32) -> Result<(), AttachError> {
    let mut head = [0u8; 20];
    let holder = super::procfs::memory_holder(pid);
    let read = fs::File::open(format!("/proc/{holder}/exe"))
        .and_then(|f| std::os::unix::fs::FileExt::read_exact_at(&f, &mut head, 0));
    read.map_err(|source: io::Error| AttachError::Proc { pid, source })?;
    // ELFCLASS64, EM_X86_64
    if head[4] != 2 || head[18] != 62 {
        return Err(AttachError::Not64Bit(pid));
    }
    Ok(())
}

/// A child of vfork shares its parent's memory for a moment only; threads that wait for one are
/// waited for when all are stopped.
fn lasting_sharer(pid: i32) -> Option<i32> {
    const ATTEMPTS: u32 = 500;
    let mut last = None;
    for _ in 0..ATTEMPTS {
        last = Some(sharer(pid)?);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    last
}

/// Another process with the same memory (clone(CLONE_VM) without CLONE_THREAD, a vfork in
/// progress): it would not be stopped.
pub(super) fn sharer(pid: i32) -> Option<i32> {
    const KCMP_VM: i32 = 1;
    // Without memory, as an ended main thread is, it would be like any kernel thread.
    let holder = super::procfs::memory_holder(pid);
    let others = fs::read_dir("/proc")
        .ok()?
        .flatten()
        .filter_map(|e| e.file_name().to_str()?.parse().ok());
    others.filter(|other: &i32| *other != pid).find(|other| {
        // SAFETY: kcmp takes numbers only; it compares two processes and changes nothing.
        unsafe { libc::syscall(libc::SYS_kcmp, holder, *other, KCMP_VM, 0, 0) == 0 }
    })
}
