//! What a target's seccomp filters would say to a system call, found out without making it: a
//! filter may kill the process that asks.
//!
//! Filters are classic BPF over `struct seccomp_data` (Documentation/userspace-api/seccomp_filter.rst).
use super::AttachError;
use super::classic_bpf::{Instruction, run};
use super::procfs::{self, Status};
use super::ptrace;
use nix::libc;

/// A process none of whose threads is under strict seccomp: there the kernel forbids `rdtsc`, too
/// (seccomp_set_mode_strict, kernel/seccomp.c), which probes make.
///
/// # Errors
/// [`AttachError::SeccompStrict`].
pub fn refuse_strict(pid: i32) -> Result<(), AttachError> {
    let is_strict = |tid: &i32| {
        let status = Status::read(pid, *tid);
        status.is_ok_and(|status| status.field("Seccomp") == Some("1"))
    };
    let tids = procfs::threads(pid).map_err(|source| AttachError::Proc { pid, source })?;
    match tids.into_iter().find(is_strict) {
        Some(tid) => Err(AttachError::SeccompStrict { pid, tid }),
        None => Ok(()),
    }
}

/// All filters of a thread; none: everything is allowed.
#[derive(Debug, Clone, Default)]
pub struct Filters(Vec<Vec<Instruction>>);

const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;
const RET_ALLOW: u32 = 0x7fff_0000;
const RET_LOG: u32 = 0x7ffc_0000;
const ACTION: u32 = 0xffff_0000;

impl Filters {
    /// Of a stopped thread, whose `status` this is.
    pub(super) fn of(pid: i32, tid: i32, status: &Status) -> Result<Filters, AttachError> {
        match status.field("Seccomp") {
            None | Some("0") => return Ok(Filters::default()),
            Some("1") => return Err(AttachError::SeccompStrict { pid, tid }),
            _ => {}
        }
        let mut filters = Vec::new();
        loop {
            match ptrace::seccomp_filter(tid, filters.len()) {
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
