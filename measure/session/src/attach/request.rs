//! What is attached to, and how.
use hopscope_probe::plan::Method;
use std::path::PathBuf;

#[derive(Debug, Clone)]
pub struct AttachRequest {
    pub pids: Vec<i32>,
    /// Every process with this command name, too.
    pub comm: Option<String>,
    /// Patterns, with captures in parentheses.
    pub functions: Vec<String>,
    pub exclude: Vec<String>,
    pub method: Method,
    pub ring_records_log2: u32,
    /// Of a process, that can be measured at once.
    pub threads: u32,
    /// Captured pointers are dereferenced unchecked.
    pub trust_pointers: bool,
    pub assume_no_exceptions: bool,
    /// Of counters of the processor only the pages are there: the targets answer `rdpmc` themselves. For tests.
    pub emulate_counters: bool,
    pub no_calibration: bool,
    /// Each clock is read only when the instructions before it are done.
    pub ordered_stamps: bool,
    /// Created when all targets are being measured.
    pub ready_file: Option<PathBuf>,
}
