//! Numbers of what a recording names.
use hopscope_event::{ProcessIx, ThreadIx};

/// Numbers threads across all targets, and processes that come while recording.
#[derive(Debug, Default)]
pub struct Numbers {
    threads: u32,
    processes: u32,
}

impl Numbers {
    /// Processes that have a number already.
    pub fn after(processes: usize) -> Numbers {
        Numbers {
            threads: 0,
            processes: processes as u32,
        }
    }

    pub(super) fn thread(&mut self) -> ThreadIx {
        self.threads += 1;
        ThreadIx(self.threads - 1)
    }

    pub(super) fn process(&mut self) -> ProcessIx {
        self.processes += 1;
        ProcessIx(self.processes - 1)
    }
}
