//! What a target's seccomp filters would say to a system call, found out without making it: a
//! filter may kill the process that asks.
//!
//! Filters are classic BPF over `struct seccomp_data` (Documentation/userspace-api/seccomp_filter.rst).
use super::AttachError;
use super::proc::Status;
use super::sys;
use nix::libc;

/// One instruction, as the kernel hands it out (`struct sock_filter`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Instruction {
    pub code: u16,
    pub jt: u8,
    pub jf: u8,
    pub k: u32,
}

/// All filters of a thread; none: everything is allowed.
#[derive(Debug, Clone, Default)]
pub struct Filters(Vec<Vec<Instruction>>);

const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;
const RET_ALLOW: u32 = 0x7fff_0000;
const RET_LOG: u32 = 0x7ffc_0000;
const ACTION: u32 = 0xffff_0000;
const MEMORY_WORDS: usize = 16;

impl Filters {
    /// Of a stopped thread, whose `status` this is.
    pub(super) fn of(pid: i32, tid: i32, status: &Status) -> Result<Filters, AttachError> {
        match status.field("Seccomp") {
            None | Some("0") => return Ok(Filters::default()),
            Some("1") => return Err(AttachError::SeccompStrict { pid }),
            _ => {}
        }
        let mut filters = Vec::new();
        loop {
            match sys::seccomp_filter(tid, filters.len()) {
                Ok(filter) => filters.push(filter),
                Err(e) if e.raw_os_error() == Some(libc::ENOENT) => return Ok(Filters(filters)),
                Err(source) => return Err(AttachError::SeccompUnreadable { pid, source }),
            }
        }
    }

    /// Whether every filter lets the call through.
    pub fn allow(&self, nr: i64, ip: u64, args: [u64; 6]) -> bool {
        let mut data = [0u8; 64];
        data[..4].copy_from_slice(&(nr as u32).to_le_bytes());
        data[4..8].copy_from_slice(&AUDIT_ARCH_X86_64.to_le_bytes());
        for (n, word) in [ip].into_iter().chain(args).enumerate() {
            data[8 + 8 * n..16 + 8 * n].copy_from_slice(&word.to_le_bytes());
        }
        self.0.iter().all(|filter| {
            matches!(
                run(filter, &data).map(|r| r & ACTION),
                Some(RET_ALLOW | RET_LOG)
            )
        })
    }
}

/// Why probes in this process may not call `process_vm_readv`: some thread's filter forbids it.
/// Unless `may_stop`, filters are not read, for which all threads are stopped once, and their being
/// there is reason enough.
pub fn forbids_copies(pid: i32, may_stop: bool) -> Result<Option<String>, AttachError> {
    let proc = |source| AttachError::Proc { pid, source };
    let mut filtered = false;
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).map_err(proc)? {
        let tid = task.map_err(proc)?.file_name();
        let tid = tid.to_str().and_then(|t| t.parse().ok()).unwrap_or(pid);
        // A thread that is gone by now makes no calls.
        let Ok(status) = Status::read(pid, tid) else {
            continue;
        };
        filtered |= !matches!(status.field("Seccomp"), None | Some("0"));
    }
    if !filtered {
        return Ok(None);
    }
    if !may_stop {
        let why = "a seccomp filter is there, and it is not read without stopping the target";
        return Ok(Some(why.into()));
    }
    let stopped = super::stop_all(pid)?;
    let mut why = None;
    for tid in stopped.tids() {
        let status = Status::read(pid, tid).map_err(|source| AttachError::Proc { pid, source })?;
        // Of the arguments only the addresses are not known, which no filter can look behind.
        let call = libc::SYS_process_vm_readv;
        let args = [pid_inside(pid).unwrap_or(pid) as u64, 0, 1, 0, 1, 0];
        if !Filters::of(pid, tid, &status)?.allow(call, 0, args) {
            why = Some(format!("the seccomp filter of thread {tid} forbids it"));
        }
    }
    stopped.resume()?;
    Ok(why)
}

/// The number of a process where it lives: the last of those in its nested pid namespaces.
pub fn pid_inside(pid: i32) -> std::io::Result<i32> {
    tid_inside(pid, pid)
}

/// The same for one of its threads.
pub fn tid_inside(pid: i32, tid: i32) -> std::io::Result<i32> {
    let status = Status::read(pid, tid)?;
    let last = status
        .field("NSpid")
        .and_then(|l| l.split_whitespace().last());
    Ok(last.and_then(|n| n.parse().ok()).unwrap_or(tid))
}

/// Runs a filter; `None` when it is not one that the kernel would have accepted.
pub fn run(filter: &[Instruction], data: &[u8; 64]) -> Option<u32> {
    let (mut a, mut x, mut memory) = (0u32, 0u32, [0u32; MEMORY_WORDS]);
    let mut pc = 0usize;
    // Jumps only go forward: a filter ends after at most its length.
    while let Some(i) = filter.get(pc) {
        pc += 1;
        let source = if i.code & 8 != 0 { x } else { i.k };
        match (i.code & 7, i.code) {
            (0, 0x20) => {
                let at = i.k as usize;
                a = u32::from_le_bytes(data.get(at..at.checked_add(4)?)?.try_into().ok()?);
            }
            (0, 0x80) => a = data.len() as u32,
            (0, 0x00) => a = i.k,
            (0, 0x60) => a = *memory.get(i.k as usize)?,
            (1, 0x81) => x = data.len() as u32,
            (1, 0x01) => x = i.k,
            (1, 0x61) => x = *memory.get(i.k as usize)?,
            (2, _) => *memory.get_mut(i.k as usize)? = a,
            (3, _) => *memory.get_mut(i.k as usize)? = x,
            (4, code) => a = arithmetic(code & 0xf0, a, source)?,
            (5, 0x05) => pc = pc.checked_add(i.k as usize)?,
            (5, code) => {
                let taken = match code & 0xf0 {
                    0x10 => a == source,
                    0x20 => a > source,
                    0x30 => a >= source,
                    0x40 => a & source != 0,
                    _ => return None,
                };
                pc += if taken { i.jt } else { i.jf } as usize;
            }
            (6, 0x06) => return Some(i.k),
            (6, 0x16) => return Some(a),
            (7, 0x07) => x = a,
            (7, 0x87) => a = x,
            _ => return None,
        }
    }
    None
}

fn arithmetic(op: u16, a: u32, b: u32) -> Option<u32> {
    Some(match op {
        0x00 => a.wrapping_add(b),
        0x10 => a.wrapping_sub(b),
        0x20 => a.wrapping_mul(b),
        0x30 => a.checked_div(b)?,
        0x40 => a | b,
        0x50 => a & b,
        0x60 => a.checked_shl(b)?,
        0x70 => a.checked_shr(b)?,
        0x80 => a.wrapping_neg(),
        0xa0 => a ^ b,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn i(code: u16, jt: u8, jf: u8, k: u32) -> Instruction {
        Instruction { code, jt, jf, k }
    }

    /// if nr == 9 (mmap) and the low half of argument 2 has PROT_EXEC: kill, else allow
    fn no_executable_mmap() -> Filters {
        Filters(vec![vec![
            i(0x20, 0, 0, 0),
            i(0x15, 0, 3, 9),
            i(0x20, 0, 0, 32),
            i(0x45, 0, 1, 4),
            i(0x06, 0, 0, 0x8000_0000),
            i(0x06, 0, 0, RET_ALLOW),
        ]])
    }

    #[test]
    fn arguments_decide() {
        let filters = no_executable_mmap();
        assert!(filters.allow(9, 0, [0, 0, 3, 0, 0, 0]));
        assert!(!filters.allow(9, 0, [0, 0, 5, 0, 0, 0]));
        assert!(filters.allow(11, 0, [0, 0, 5, 0, 0, 0]));
    }

    #[test]
    fn the_strictest_filter_wins_and_none_allows() {
        assert!(Filters::default().allow(9, 0, [0; 6]));
        let errno = vec![i(0x06, 0, 0, 0x0005_0001)];
        let allow = vec![i(0x06, 0, 0, RET_ALLOW)];
        assert!(!Filters(vec![allow, errno]).allow(1, 0, [0; 6]));
    }

    proptest! {
        #[test]
        fn any_program_ends(raw in proptest::collection::vec((any::<u16>(), any::<u8>(), any::<u8>(), any::<u32>()), 0..64)) {
            let filter: Vec<Instruction> = raw.into_iter().map(|(c, t, f, k)| i(c & 0xff, t, f, k)).collect();
            let _ = run(&filter, &[7; 64]);
        }
    }
}
