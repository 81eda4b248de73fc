//! One accepted connection.
use super::{Counters, Service};
use crate::connections::pattern::Pattern;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

/// What an event left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Read,
    /// The other side reads too slowly: nothing more is read from it before it took what waits.
    Write,
    End,
}

pub(super) struct Peer {
    pub(super) stream: TcpStream,
    /// Bytes to send, from `sent` on.
    waiting: Vec<u8>,
    sent: usize,
    /// The beginning of a request.
    request: Vec<u8>,
    /// Bytes of the stream so far.
    offset: u64,
    corrupt: bool,
    pub(super) waits_for_room: bool,
}

/// What the peers of a thread share.
pub(super) struct Shared<'a> {
    pub(super) service: Service,
    pub(super) pattern: Option<Pattern>,
    pub(super) counters: &'a Counters,
}

/// Bytes a source offers at once.
pub(super) const CHUNK: usize = 128 << 10;

impl Peer {
    pub(super) fn new(stream: TcpStream) -> Peer {
        Peer {
            stream,
            waiting: Vec::new(),
            sent: 0,
            request: Vec::new(),
            offset: 0,
            corrupt: false,
            waits_for_room: false,
        }
    }

    pub(super) fn ready(&mut self, shared: &Shared<'_>, buffer: &mut [u8]) -> Next {
        let done = self.flush(shared).and_then(|flushed| {
            if flushed {
                match shared.service {
                    Service::Source { .. } => self.pour(shared, buffer),
                    _ => self.read(shared, buffer),
                }
            } else {
                Ok(Next::Write)
            }
        });
        let counters = shared.counters;
        match done {
            Ok(next) => next,
            Err(error) if error.kind() == ErrorKind::WouldBlock => Next::Read,
            Err(error) => {
                let reset = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
                let counter = if reset.contains(&error.kind()) {
                    &counters.reset
                } else {
                    &counters.failed
                };
                Counters::add(counter, 1);
                Next::End
            }
        }
    }

    fn read(&mut self, shared: &Shared<'_>, buffer: &mut [u8]) -> std::io::Result<Next> {
        loop {
            let n = self.stream.read(buffer)?;
            if n == 0 {
                Counters::add(&shared.counters.ended, 1);
                return Ok(Next::End);
            }
            // Counted before it is answered: who has the answer finds it counted.
            Counters::add(&shared.counters.bytes_received, n as u64);
            let bytes = &buffer[..n];
            let all_sent = match shared.service {
                Service::Echo => self.send(bytes, shared)?,
                Service::Respond { request, response } => {
                    self.respond(bytes, request, response, shared)?
                }
                Service::Sink { .. } => {
                    self.check(bytes, shared);
                    true
                }
                Service::Source { .. } => true,
            };
            if !all_sent {
                return Ok(Next::Write);
            }
            if n < buffer.len() {
                return Ok(Next::Read);
            }
        }
    }

    fn respond(
        &mut self,
        mut bytes: &[u8],
        request: usize,
        response: usize,
        shared: &Shared<'_>,
    ) -> std::io::Result<bool> {
        while !bytes.is_empty() {
            let (now, rest) = bytes.split_at(bytes.len().min(request - self.request.len()));
            self.request.extend_from_slice(now);
            bytes = rest;
            if self.request.len() == request {
                let answer = self.request.iter().cycle().take(response);
                self.waiting.extend(answer);
                self.request.clear();
                Counters::add(&shared.counters.answered, 1);
            }
        }
        self.flush(shared)
    }

    fn check(&mut self, bytes: &[u8], shared: &Shared<'_>) {
        let offset = self.offset;
        self.offset += bytes.len() as u64;
        if let (Some(pattern), false) = (&shared.pattern, self.corrupt)
            && pattern.stream(offset, bytes.len()) != bytes
        {
            self.corrupt = true;
            Counters::add(&shared.counters.corrupt, 1);
        }
    }

    /// Sends the stream as long as it is taken; one chunk for each event, so that all get some.
    fn pour(&mut self, shared: &Shared<'_>, buffer: &mut [u8]) -> std::io::Result<Next> {
        match self.stream.read(buffer) {
            Ok(0) => {
                Counters::add(&shared.counters.ended, 1);
                return Ok(Next::End);
            }
            Ok(n) => Counters::add(&shared.counters.bytes_received, n as u64),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        if let Some(pattern) = &shared.pattern {
            let bytes = pattern.stream(self.offset, CHUNK);
            match shared.counters.sent(|| self.stream.write(bytes)) {
                Ok(n) => self.offset += n as u64,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Next::Write)
    }

    /// True when everything was taken.
    fn send(&mut self, bytes: &[u8], shared: &Shared<'_>) -> std::io::Result<bool> {
        let mut taken = 0;
        while taken < bytes.len() {
            let rest = &bytes[taken..];
            match shared.counters.sent(|| self.stream.write(rest)) {
                Ok(n) => taken += n,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        self.waiting.extend_from_slice(&bytes[taken..]);
        Ok(taken == bytes.len())
    }

    /// True when nothing waits any more.
    fn flush(&mut self, shared: &Shared<'_>) -> std::io::Result<bool> {
        while self.sent < self.waiting.len() {
            let rest = &self.waiting[self.sent..];
            match shared.counters.sent(|| self.stream.write(rest)) {
                Ok(n) => self.sent += n,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        self.waiting.clear();
        self.sent = 0;
        Ok(true)
    }
}
