//! Whether the target may read the time stamp counter: `prctl(PR_SET_TSC, PR_TSC_SIGSEGV)` ends it
//! at the first probe, and so does strict seccomp.
use super::error::LiveError;
use hopscope_process::memory::TargetMemory;
use hopscope_process::{AttachError, StoppedProcess, seccomp};
use nix::libc;

/// Asks the stopped thread. The flag is each thread's own and inherited by those it creates, so
/// the main thread's holds for all but those that were made before it, or set it themselves.
///
/// A seccomp filter that forbids the question says nothing about the answer: it is taken for yes.
///
/// # Errors
/// [`LiveError::TscOff`], [`AttachError::SeccompStrict`].
pub(super) fn check(stopped: &mut StoppedProcess) -> Result<(), LiveError> {
    let pid = stopped.pid();
    // Looked at before, which may be a while ago.
    seccomp::refuse_strict(pid)?;
    let answer_at = stopped.remote_text("")?;
    let args = [libc::PR_GET_TSC as u64, answer_at, 0, 0, 0, 0];
    match stopped.remote_call(libc::SYS_prctl, args) {
        Ok(0) => {}
        Ok(_) => return Ok(()),
        Err(AttachError::SeccompForbids { .. }) => {
            log::info!(
                "process {pid}: its seccomp filter forbids PR_GET_TSC: its counter is taken to be on"
            );
            return Ok(());
        }
        Err(e) => return Err(e.into()),
    }
    let mut answer = [0u8; 4];
    let memory = TargetMemory::open(pid)?;
    memory.read(answer_at, &mut answer).map_err(LiveError::io(
        pid,
        "reading whether its time stamp counter is on",
    ))?;
    match i32::from_le_bytes(answer) {
        libc::PR_TSC_SIGSEGV => Err(LiveError::TscOff { pid }),
        _ => Ok(()),
    }
}
