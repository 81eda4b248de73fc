//! One who asks: a line at a time, and no next one before the answer has gone.
use nix::sys::socket::{MsgFlags, send};
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// Bytes of a request, with its end of line.
pub(super) const LINE_MAX: usize = 4_096;

pub(super) struct Client {
    pub(super) name: u64,
    /// When it was heard last, as a number that grows.
    pub(super) heard: u64,
    stream: UnixStream,
    asked: Vec<u8>,
    answer: Vec<u8>,
    sent: usize,
    /// Nothing more is read of it.
    ends: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wants {
    Read,
    Write,
    /// It is over.
    Nothing,
}

impl Client {
    pub(super) fn new(stream: UnixStream, name: u64) -> Client {
        Client {
            name,
            heard: name,
            stream,
            asked: Vec::new(),
            answer: Vec::new(),
            sent: 0,
            ends: false,
        }
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// One step, which never waits. `answer` may put a request off (`None`).
    pub(super) fn turn(&mut self, answer: &mut dyn FnMut(&[u8]) -> Option<String>) -> Wants {
        if !self.flush() {
            return self.wants();
        }
        if self.line().is_none() && !self.ends {
            self.read();
        }
        let line = self.line();
        if let Some(end) = line {
            if let Some(said) = answer(&self.asked[..end]) {
                self.asked.drain(..=end);
                self.say(said);
            }
        } else if self.asked.len() >= LINE_MAX {
            self.asked.clear();
            self.ends = true;
            let error = format!("a request has at most {LINE_MAX} bytes, and ends with its line");
            let line = serde_json::json!({ "type": "error", "schema": 1, "error": error });
            self.say(line.to_string());
        }
        self.flush();
        self.wants()
    }

    fn line(&self) -> Option<usize> {
        self.asked.iter().position(|byte| *byte == b'\n')
    }

    fn read(&mut self) {
        let mut part = [0; LINE_MAX];
        let room = LINE_MAX - self.asked.len();
        match self.stream.read(&mut part[..room]) {
            Ok(0) => self.ends = true,
            Ok(len) => self.asked.extend_from_slice(&part[..len]),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted => {}
                _ => self.ends = true,
            },
        }
    }

    fn say(&mut self, line: String) {
        (self.answer, self.sent) = (line.into_bytes(), 0);
        self.answer.push(b'\n');
    }

    /// False: not everything has gone.
    fn flush(&mut self) -> bool {
        let left = &self.answer[self.sent..];
        if left.is_empty() {
            return true;
        }
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        match send(self.stream.as_raw_fd(), left, flags) {
            Ok(len) => self.sent += len,
            Err(nix::errno::Errno::EAGAIN | nix::errno::Errno::EINTR) => {}
            Err(_) => {
                // Nobody is there any more to read it.
                (self.ends, self.sent) = (true, self.answer.len());
                self.asked.clear();
            }
        }
        self.sent == self.answer.len()
    }

    fn wants(&self) -> Wants {
        let pending = self.sent < self.answer.len();
        // One that was put off: there is room to write, so that it comes again at once.
        match (pending || self.line().is_some(), self.ends) {
            (true, _) => Wants::Write,
            (false, true) => Wants::Nothing,
            (false, false) => Wants::Read,
        }
    }
}

#[cfg(test)]
mod tests;
