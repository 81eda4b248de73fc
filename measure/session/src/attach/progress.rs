//! What a long attach is doing, said while it lasts: one line that changes, on a terminal.
use hopscope_probe::progress::{self, Phase};
use nix::sys::signal::SigSet;
use std::io::{IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Shorter attaches say nothing.
const SILENT: Duration = Duration::from_secs(1);
const BETWEEN: Duration = Duration::from_millis(200);
/// Back to the start of the line, and the line empty.
const CLEAR: &str = "\r\x1b[K";

/// Says it until it is dropped.
pub(crate) struct Shown {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Shown {
    /// Nothing is said with `--quiet`, nor elsewhere than on a terminal.
    pub(crate) fn begin() -> Shown {
        let (end, ended) = mpsc::channel::<()>();
        // Elsewhere somebody counts on what is said: one line for an error.
        let wanted = log::max_level() > log::LevelFilter::Error && std::io::stderr().is_terminal();
        let show = move || {
            // Who stops the target waits for its signals.
            let _ = SigSet::all().thread_block();
            let stderr = std::io::stderr();
            let mut line = Line::new(stderr);
            let started = Instant::now();
            while ended.recv_timeout(BETWEEN) == Err(RecvTimeoutError::Timeout) {
                if started.elapsed() >= SILENT
                    && let Some(now) = progress::now()
                {
                    line.show(now);
                }
            }
            line.clear();
        };
        // Without a thread nothing is said.
        let thread = thread::Builder::new().name("progress".into());
        let thread = wanted.then(|| thread.spawn(show).ok()).flatten();
        Shown {
            end: Some(end),
            thread,
        }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// When nobody reads it there is nobody left to tell.
struct Line<W: Write> {
    out: W,
    said: bool,
}

impl<W: Write> Line<W> {
    fn new(out: W) -> Line<W> {
        Line { out, said: false }
    }

    fn show(&mut self, (phase, done, all): (Phase, u64, u64)) {
        self.said = true;
        let _ = write!(
            self.out,
            "{CLEAR}hopscope: {}, {done} of {all}",
            phase.words()
        );
        let _ = self.out.flush();
    }

    fn clear(&mut self) {
        if self.said {
            let _ = self.out.write_all(CLEAR.as_bytes());
            let _ = self.out.flush();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_that_is_gone_at_the_end() {
        let mut line = Line::new(Vec::new());
        line.clear();
        for (phase, done) in [(Phase::Files, 1), (Phase::Copies, 5), (Phase::Copies, 6)] {
            line.show((phase, done, 7));
        }
        line.clear();
        let said = String::from_utf8(line.out).expect("words");
        assert_eq!(
            said.split(CLEAR).collect::<Vec<_>>(),
            [
                "",
                "hopscope: reading files, 1 of 7",
                "hopscope: copying functions, 5 of 7",
                "hopscope: copying functions, 6 of 7",
                ""
            ]
        );
    }
}
