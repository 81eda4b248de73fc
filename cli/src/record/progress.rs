//! What a long attach is doing, said while it lasts: one line that changes on a terminal, elsewhere a
//! line for each phase of one that takes longer than a second.
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
pub(super) struct Shown {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Shown {
    /// Nothing is said with `--quiet`.
    pub(super) fn begin() -> Shown {
        let (end, ended) = mpsc::channel::<()>();
        let wanted = log::max_level() > log::LevelFilter::Error;
        let show = move || {
            // Who stops the target waits for its signals.
            let _ = SigSet::all().thread_block();
            let stderr = std::io::stderr();
            let mut line = Line::new(stderr.is_terminal(), stderr);
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
    terminal: bool,
    out: W,
    /// Said already.
    last: Option<Phase>,
}

impl<W: Write> Line<W> {
    fn new(terminal: bool, out: W) -> Line<W> {
        Line {
            terminal,
            out,
            last: None,
        }
    }

    fn show(&mut self, (phase, done, all): (Phase, u64, u64)) {
        let words = phase.words();
        let line = match self.terminal {
            true => format!("{CLEAR}hopscope: {words}, {done} of {all}"),
            false if self.last == Some(phase) => return,
            false => format!("hopscope: {words}, {all}\n"),
        };
        self.last = Some(phase);
        let _ = self.out.write_all(line.as_bytes());
        let _ = self.out.flush();
    }

    fn clear(&mut self) {
        if self.terminal && self.last.is_some() {
            let _ = self.out.write_all(CLEAR.as_bytes());
            let _ = self.out.flush();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(terminal: bool) -> String {
        let mut line = Line::new(terminal, Vec::new());
        line.clear();
        for (phase, done) in [(Phase::Files, 1), (Phase::Copies, 5), (Phase::Copies, 6)] {
            line.show((phase, done, 7));
        }
        line.clear();
        String::from_utf8(line.out).expect("words")
    }

    #[test]
    fn one_line_on_a_terminal_and_one_for_each_phase_elsewhere() {
        assert_eq!(
            shown(false),
            "hopscope: reading files, 7\nhopscope: copying functions, 7\n"
        );
        let lines: Vec<String> = shown(true).split(CLEAR).map(str::to_owned).collect();
        assert_eq!(
            lines,
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
