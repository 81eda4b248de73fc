use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum LocateError {
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
