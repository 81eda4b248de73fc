//! The process that tells readers again of what came by TCP (`programs::tell`), seen from who asks it. It is left to itself:
//! it ends once it has told all whom it was asked to tell.
use crate::programs::SpliceError;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Cookies of network namespaces.
pub(crate) type Namespaces = HashSet<u64>;

const READ_BYTES: usize = 4096;
const WHAT: &str = "starting the process that tells readers";

pub(crate) struct Edges {
    child: Child,
    wants: ChildStdin,
    answers: ChildStdout,
    /// The beginning of an answer.
    begun: Vec<u8>,
    busy: Namespaces,
    has_ended: bool,
}

impl Edges {
    /// `command`: that of a program that calls [`crate::session::tell`] with the words which are added: the numbers of its maps.
    pub(crate) fn start(mut command: Command, maps: [u32; 2]) -> Result<Edges, SpliceError> {
        let failed = |error: std::io::Error| SpliceError::call(WHAT, error);
        // Ctrl-C is for the accelerator, at whose end it ends by itself. It holds nothing that somebody waits for the end of.
        let mut child = command
            .args(maps.map(|map| map.to_string()))
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed)?;
        let (Some(wants), Some(mut answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(SpliceError::missing(WHAT, "process"));
        };
        let mut ready = String::new();
        // Nothing follows before it is asked.
        BufReader::new(&mut answers)
            .read_line(&mut ready)
            .map_err(failed)?;
        if ready != "ready\n" {
            // Its error.
            let _ = child.wait();
            return Err(SpliceError::call(WHAT, ready.trim_end()));
        }
        Ok(Edges {
            child,
            wants,
            answers,
            begun: Vec::new(),
            busy: Namespaces::new(),
            has_ended: false,
        })
    }

    /// Where it still does what it was asked.
    pub(crate) fn busy(&mut self) -> &Namespaces {
        while !self.busy.is_empty() && self.has_answers() {
            let mut more = [0; READ_BYTES];
            let bytes = self.answers.read(&mut more).unwrap_or(0);
            if bytes == 0 {
                self.note_end();
                break;
            }
            self.begun.extend_from_slice(&more[..bytes]);
            self.take_answers();
        }
        &self.busy
    }

    /// Asks it to tell the readers of all ends there that have something to read by TCP and no redirected bytes before it.
    pub(crate) fn give(&mut self, namespaces: impl Iterator<Item = u64>) {
        for cookie in namespaces {
            if self.has_ended {
                return;
            }
            self.busy.insert(cookie);
            if writeln!(self.wants, "{cookie}").is_err() {
                self.note_end();
            }
        }
    }

    fn has_answers(&self) -> bool {
        let mut all = [PollFd::new(self.answers.as_fd(), PollFlags::POLLIN)];
        poll(&mut all, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
    }

    fn take_answers(&mut self) {
        while let Some(end) = self.begun.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.begun.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            let (cookie, why) = line
                .trim_end()
                .split_once(' ')
                .unwrap_or((line.trim_end(), ""));
            if let Ok(cookie) = cookie.parse() {
                self.busy.remove(&cookie);
            }
            if !why.is_empty() {
                log::warn!("{why}: readers that wait for edges (EPOLLET) may not see it");
            }
        }
    }

    fn note_end(&mut self) {
        self.has_ended = true;
        let how = self.child.try_wait().ok().flatten();
        let how = how.map_or_else(String::new, |status| format!(" ({status})"));
        log::warn!(
            "what tells readers of bytes that came by TCP has ended{how}: those that wait for edges (EPOLLET) may not see them"
        );
        self.busy.clear();
    }
}
