//! How many packets are in a file that grows: once a second, on a terminal only.
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_secs(1);

pub(super) struct Progress {
    shown: Option<Instant>,
    is_shown: bool,
}

impl Progress {
    pub(super) fn new(writes_file: bool) -> Progress {
        let is_wanted = writes_file && log::log_enabled!(log::Level::Warn);
        Progress {
            shown: (is_wanted && std::io::stderr().is_terminal()).then(Instant::now),
            is_shown: false,
        }
    }

    pub(super) fn show(&mut self, packets: u64) {
        let Some(shown) = self.shown.filter(|shown| shown.elapsed() >= EVERY) else {
            return;
        };
        self.shown = Some(shown + EVERY);
        self.is_shown = true;
        let mut err = std::io::stderr().lock();
        // A terminal that is gone: the file is what counts.
        let _ = write!(err, "\r{packets} packets");
        let _ = err.flush();
    }
}

/// What is said next begins on a line of its own.
impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_shown {
            eprintln!();
        }
    }
}
