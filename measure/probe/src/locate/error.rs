use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum LocateError {
    #[error("no process {pid}")]
    NoSuchProcess { pid: i32 },
    #[error(
        "process {pid}: no permission to look into it; run as its user, or as root (CAP_SYS_PTRACE)"
    )]
    NoPermission { pid: i32 },
    #[error("process {pid}: {source}")]
    Process { pid: i32, source: io::Error },
    #[error("{path}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("{path}: not an ELF file that can be read: {why}")]
    NotElf { path: PathBuf, why: String },
    #[error("{path}: not an x86-64 ELF file")]
    NotX86_64 { path: PathBuf },
    #[error(
        "{path}: the file on disk is not the one that is mapped (replaced since the process started); restart the process"
    )]
    Replaced { path: PathBuf },
    #[error("pattern {pattern:?}: {why}")]
    Pattern { pattern: String, why: String },
}

impl LocateError {
    /// For a failure to read from `/proc/PID`.
    pub(super) fn of_process(pid: i32, source: io::Error) -> LocateError {
        const ESRCH: i32 = 3;
        match source.kind() {
            io::ErrorKind::NotFound => LocateError::NoSuchProcess { pid },
            io::ErrorKind::PermissionDenied => LocateError::NoPermission { pid },
            _ if source.raw_os_error() == Some(ESRCH) => LocateError::NoSuchProcess { pid },
            _ => LocateError::Process { pid, source },
        }
    }
}
