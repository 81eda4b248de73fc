//! What the kernel itself counts of each program: runs, their time, runs that it left out.
use super::LoadError;
use libbpf_rs::Object;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// Of one program since it was loaded. Times only while [`measure_runs`] is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProgramRuns {
    pub runs: u64,
    pub run_ns: u64,
    /// It was running on that processor already.
    pub missed: u64,
    /// Instructions as the verifier left them: without those of what was not asked for.
    #[cfg(test)]
    pub insns: u32,
}

/// The kernel measures every program's runs while the descriptor is open (bpf(2), BPF_ENABLE_STATS);
/// it stops by itself when the process ends.
pub(super) fn measure_runs() -> Result<OwnedFd, LoadError> {
    // SAFETY: the call takes a number and gives a new descriptor or an error.
    let fd = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
    if fd < 0 {
        return Err(LoadError::Bpf {
            what: "having the kernel measure programs",
            why: std::io::Error::from_raw_os_error(-fd).to_string(),
        });
    }
    // SAFETY: the descriptor is new, and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

pub(super) fn read(object: &Object, program: &str) -> Result<ProgramRuns, LoadError> {
    let what = "reading what the kernel counts of a program";
    let missing = || LoadError::Bpf {
        what,
        why: format!("there is no program {program}"),
    };
    let found = object.progs_mut().find(|p| p.name() == program);
    let found = found.ok_or_else(missing)?;
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut len = size_of_val(&info) as u32;
    let to = (&raw mut info).cast();
    // SAFETY: `to` has room for `len` bytes, and every field of the structure is a number.
    let error =
        unsafe { libbpf_sys::bpf_obj_get_info_by_fd(found.as_fd().as_raw_fd(), to, &mut len) };
    if error != 0 {
        let why = std::io::Error::from_raw_os_error(-error).to_string();
        return Err(LoadError::Bpf { what, why });
    }
    Ok(ProgramRuns {
        runs: info.run_cnt,
        run_ns: info.run_time_ns,
        missed: info.recursion_misses,
        #[cfg(test)]
        insns: info.xlated_prog_len / 8,
    })
}
