//! What forbids a session to begin, besides the kernel's faults.
use super::error::SessionError;
use crate::programs::policies;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Threads are known to the kernel programs by their numbers in the first PID namespace.
pub(super) fn check_pair(pair: bool) -> Result<(), SessionError> {
    /// PROC_PID_INIT_INO, include/linux/proc_ns.h
    const FIRST: u64 = 0xEFFF_FFFC;
    let own = std::fs::metadata("/proc/self/ns/pid").map(|found| found.ino())?;
    if pair && own != FIRST {
        return Err(SessionError::PairInContainer);
    }
    Ok(())
}

/// Programs of others that would not see what takes the short cut: not unless that is `allowed`.
///
/// # Errors
/// There are such programs, or it cannot be told.
pub fn refuse_policies(groups: &[PathBuf], allowed: bool) -> Result<(), SessionError> {
    for group in groups {
        let found = policies(group)?;
        if found.is_empty() || allowed {
            continue;
        }
        let words = found.iter().map(|policy| {
            let ids: Vec<String> = policy.programs.iter().map(u32::to_string).collect();
            format!("{} (program {})", policy.what, ids.join(", "))
        });
        return Err(SessionError::Policies {
            what: words.collect::<Vec<_>>().join(" and "),
            group: group.display().to_string(),
        });
    }
    Ok(())
}
