use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    #[error("{path}: {source}")]
    Open { path: PathBuf, source: io::Error },
    #[error("reading the trace at byte {at}: {source}")]
    Read { at: u64, source: io::Error },
    #[error("writing the trace: {0}")]
    Write(#[from] io::Error),
    #[error("not a hopscope trace (it does not start with HOPTRACE)")]
    NotATrace,
    #[error("trace format {major}.{minor} is not supported by this hopscope, which reads {known}.x; use a newer one", known = crate::format::MAJOR)]
    Version { major: u16, minor: u16 },
    #[error("the trace has no readable header chunk: {0}")]
    NoMeta(String),
    #[error("chunk at byte {at}: {what}")]
    Chunk { at: u64, what: String },
    #[error("a table of {0} bytes is larger than a chunk may be")]
    TooLarge(usize),
}
