//! What the kernel counts of each program: runs, their time, and runs that it skipped.
use crate::{BpfError, object};
use libbpf_rs::Object;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// Of one program since it was loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgramRuns {
    /// Counted while [`measure`] is held, as is their time.
    pub runs: u64,
    pub run_ns: u64,
    /// Skipped because the program was running on that processor already.
    pub missed: u64,
    /// Instructions as the verifier left them: without dead code.
    pub insns: u32,
}

/// The kernel measures every program's runs while the descriptor is open (bpf(2), BPF_ENABLE_STATS).
///
/// # Errors
/// Not allowed, or not in this kernel.
pub fn measure() -> Result<OwnedFd, BpfError> {
    // SAFETY: the call takes a number and gives a new descriptor or an error.
    let fd = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
    if fd < 0 {
        return Err(failed("measuring the programs' runs", fd));
    }
    // SAFETY: the descriptor is new, and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn failed(what: &'static str, error: i32) -> BpfError {
    let why = std::io::Error::from_raw_os_error(-error).to_string();
    BpfError::Call { what, why }
}

/// # Errors
/// There is no such program, or the kernel gives no information.
pub fn read(object: &Object, program: &str) -> Result<ProgramRuns, BpfError> {
    let program = object::program(object, program)?;
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut len = size_of_val(&info) as u32;
    let to = (&raw mut info).cast();
    // SAFETY: `to` has room for `len` bytes, and every field of the structure is a number.
    let error =
        unsafe { libbpf_sys::bpf_obj_get_info_by_fd(program.as_fd().as_raw_fd(), to, &mut len) };
    if error != 0 {
        return Err(failed("reading a program's run statistics", error));
    }
    Ok(ProgramRuns {
        runs: info.run_cnt,
        run_ns: info.run_time_ns,
        missed: info.recursion_misses,
        insns: info.xlated_prog_len / 8,
    })
}
