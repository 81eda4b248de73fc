//! One connection: bytes go back as they came, and the end comes last.
use super::EchoError;
use super::share::{Drained, Share};
use nix::sys::epoll::EpollFlags;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

/// Read at once; a message of 128 KiB is one call when it is there.
pub(super) const CHUNK: usize = 128 << 10;

pub(super) struct Connection {
    pub(super) stream: TcpStream,
    /// Read and not sent yet.
    held: Vec<u8>,
    held_from: usize,
    has_ended: bool,
    /// The kernel reported end of stream; it may do so before it can be read.
    pub(super) is_ending: bool,
    /// What the kernel does of this connection's echo.
    pub(super) share: Option<Share>,
    pub(super) waits_for: EpollFlags,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Wait(EpollFlags),
    /// What the kernel turned round is not with the client yet: look again soon.
    Soon,
    Ended,
    Reset,
    Failed,
}

impl Connection {
    pub(super) fn new(stream: TcpStream, share: Option<Share>) -> Connection {
        let waits_for = match &share {
            // Of bytes that the kernel turns round user space is not even woken: epoll compares what
            // a wake-up is for with what is waited for, and bytes come with EPOLLIN alone.
            Some(_) => EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET,
            None => EpollFlags::EPOLLIN,
        };
        Connection {
            stream,
            held: Vec::new(),
            held_from: 0,
            has_ended: false,
            is_ending: false,
            share,
            waits_for,
        }
    }

    /// Does what can be done now. `sent` is told how many bytes went back.
    pub(super) fn turn(
        &mut self,
        buffer: &mut [u8],
        kernel: &impl Drained,
        sent: &mut u64,
    ) -> Result<Next, EchoError> {
        if self.has_held()
            && let Some(next) = self.send_held(kernel, sent)?
        {
            return Ok(next);
        }
        if self.has_ended {
            return self.end(kernel);
        }
        Ok(match self.stream.read(buffer) {
            Ok(0) => {
                if let Some(share) = &self.share
                    && !kernel.is_all_read(share)?
                {
                    return Ok(Next::Soon);
                }
                self.has_ended = true;
                self.end(kernel)?
            }
            Ok(n) => {
                if let Some(share) = &mut self.share {
                    share.received += n as u64;
                    share.is_user = true;
                    if !share.is_clear {
                        self.hold(&buffer[..n]);
                        let next = self.send_held(kernel, sent)?;
                        return Ok(next.unwrap_or(Next::Wait(EpollFlags::EPOLLIN)));
                    }
                }
                self.echo(&buffer[..n], sent)
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock if self.is_ending && self.share.is_some() => Next::Soon,
                ErrorKind::WouldBlock | ErrorKind::Interrupted => Next::Wait(self.idle()),
                _ => failed(&error),
            },
        })
    }

    /// What is waited for when nothing is to be done.
    fn idle(&self) -> EpollFlags {
        match &self.share {
            Some(share) if !share.is_user => EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET,
            _ => EpollFlags::EPOLLIN,
        }
    }

    fn has_held(&self) -> bool {
        self.held_from < self.held.len()
    }

    fn hold(&mut self, bytes: &[u8]) {
        if !self.has_held() {
            self.held.clear();
            self.held_from = 0;
        }
        self.held.extend_from_slice(bytes);
    }

    /// `None` when all of it went.
    fn send_held(
        &mut self,
        kernel: &impl Drained,
        sent: &mut u64,
    ) -> Result<Option<Next>, EchoError> {
        if let Some(share) = &mut self.share
            && !share.is_clear
        {
            if !kernel.is_drained(share)? {
                return Ok(Some(Next::Soon));
            }
            // The kernel turns nothing round any more once user space was left one byte.
            share.is_clear = true;
        }
        Ok(match self.stream.write(&self.held[self.held_from..]) {
            Ok(n) => {
                *sent += n as u64;
                if let Some(share) = &mut self.share {
                    share.sent += n as u64;
                }
                self.held_from += n;
                if self.has_held() {
                    Some(Next::Wait(EpollFlags::EPOLLOUT))
                } else {
                    // Idle connections keep no buffer.
                    self.held = Vec::new();
                    self.held_from = 0;
                    None
                }
            }
            Err(error) => Some(match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted => Next::Wait(EpollFlags::EPOLLOUT),
                _ => failed(&error),
            }),
        })
    }

    fn echo(&mut self, bytes: &[u8], sent: &mut u64) -> Next {
        let wrote = match self.stream.write(bytes) {
            Ok(n) => n,
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted => 0,
                _ => return failed(&error),
            },
        };
        *sent += wrote as u64;
        if let Some(share) = &mut self.share {
            share.sent += wrote as u64;
        }
        if wrote == bytes.len() {
            return Next::Wait(EpollFlags::EPOLLIN);
        }
        // No more is read until this went: the client's window closes when it does not read.
        self.hold(&bytes[wrote..]);
        Next::Wait(EpollFlags::EPOLLOUT)
    }

    fn end(&self, kernel: &impl Drained) -> Result<Next, EchoError> {
        Ok(match &self.share {
            // The end would overtake what the kernel still has.
            Some(share) if !share.is_clear && !kernel.is_drained(share)? => Next::Soon,
            _ => Next::Ended,
        })
    }
}

fn failed(error: &std::io::Error) -> Next {
    match error.kind() {
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Next::Reset,
        _ => Next::Failed,
    }
}
