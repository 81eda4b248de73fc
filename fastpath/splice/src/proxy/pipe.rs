//! One direction of a connection: bytes in order, and the end behind the last of them.
use super::ProxyError;
use super::share::{Kernel, Share};
use crate::socket_options;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};

/// Read at once, and the most that user space holds of a direction.
pub(super) const CHUNK: usize = 128 << 10;

#[derive(Default)]
pub(super) struct Pipe {
    /// Read and not sent yet.
    held: Vec<u8>,
    held_from: usize,
    /// No more will come from the source.
    has_ended: bool,
    /// And the destination was told so.
    pub(super) is_shut: bool,
    /// The kernel reported the source's end of stream; it may do so before it can be read.
    pub(super) is_ending: bool,
    /// What is held waits for the kernel's part.
    waits_for_kernel: bool,
    /// The source's window is closed; what it was before.
    clamped: Option<i32>,
    pub(super) share: Option<Share>,
    /// Sent by user space.
    pub(super) sent: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Wait,
    /// What the kernel redirected is not with TCP yet: look again soon.
    Soon,
    Failed(Side, ErrorKind),
}

/// Of which socket an error is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Source,
    Destination,
}

impl Pipe {
    pub(super) fn wants_bytes(&self) -> bool {
        let is_copied = self.share.as_ref().is_none_or(|share| share.is_user);
        is_copied && !self.has_held() && !self.has_ended && !self.waits_for_kernel
    }

    /// The kernel has this direction, and its end is yet to come.
    pub(super) fn wants_end(&self) -> bool {
        self.share.as_ref().is_some_and(|share| !share.is_user)
            && !self.is_ending
            && !self.has_ended
    }

    /// Something of it may be possible now that was not when it was looked at before.
    pub(super) fn waits(&self) -> bool {
        self.waits_for_kernel || self.is_ending || self.has_ended
    }

    pub(super) fn wants_room(&self) -> bool {
        self.has_held() && !self.waits_for_kernel
    }

    pub(super) fn has_kernel(&mut self, has: bool) {
        if let Some(share) = &mut self.share {
            share.is_user = !has;
        }
    }

    /// Has the sender stop, until bytes of it can be read: what it was promised still comes, and a
    /// segment now and then.
    pub(super) fn hold_back(&mut self, from: &TcpStream) {
        // Another socket option than the buffer's size: what is there stays charged as it is. A
        // connection that is gone says so when it is read.
        if self.clamped.is_none()
            && let Ok(window) = socket_options::window_clamp(from)
            && socket_options::set_window_clamp(from, 1).is_ok()
        {
            self.clamped = Some(window);
        }
    }

    /// Before bytes are read: TCP tells the sender of its larger window when they are.
    fn let_go(&mut self, from: &TcpStream) {
        if let Some(window) = self.clamped.take() {
            let _ = socket_options::set_window_clamp(from, window);
        }
    }

    fn has_held(&self) -> bool {
        self.held_from < self.held.len()
    }

    /// Does what can be done now.
    pub(super) fn turn(
        &mut self,
        from: &TcpStream,
        to: &TcpStream,
        buffer: &mut [u8],
        kernel: &impl Kernel,
    ) -> Result<Next, ProxyError> {
        if self.has_held()
            && let Some(next) = self.send_held(to, kernel)?
        {
            return Ok(next);
        }
        if self.has_ended {
            return self.end(to, kernel);
        }
        // What is left where it is, is charged to its sender.
        if self.share.is_some() && !self.is_clear(kernel)? {
            return Ok(Next::Soon);
        }
        if self.clamped.is_some() && from.peek(&mut [0]).is_ok() {
            self.let_go(from);
        }
        match (&*from).read(buffer) {
            Ok(0) => self.source_ended(to, kernel),
            Ok(n) => self.received(&buffer[..n], n == buffer.len(), to, kernel),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock => self.nothing_yet(kernel),
                ErrorKind::Interrupted => Ok(Next::Wait),
                kind => Ok(Next::Failed(Side::Source, kind)),
            },
        }
    }

    /// What was left to user space may lie behind what the kernel has to send out of the same socket: it
    /// cannot be read, and the socket says all the time that it can.
    fn nothing_yet(&mut self, kernel: &impl Kernel) -> Result<Next, ProxyError> {
        let Some(share) = &self.share else {
            return Ok(Next::Wait);
        };
        if self.is_ending || !kernel.is_all_read(share)? {
            self.waits_for_kernel = true;
            return Ok(Next::Soon);
        }
        Ok(Next::Wait)
    }

    fn source_ended(&mut self, to: &TcpStream, kernel: &impl Kernel) -> Result<Next, ProxyError> {
        if let Some(share) = &self.share
            && !kernel.is_all_read(share)?
        {
            self.is_ending = true;
            return Ok(Next::Soon);
        }
        self.has_ended = true;
        self.end(to, kernel)
    }

    fn received(
        &mut self,
        bytes: &[u8],
        is_more: bool,
        to: &TcpStream,
        kernel: &impl Kernel,
    ) -> Result<Next, ProxyError> {
        if let Some(share) = &mut self.share {
            share.received += bytes.len() as u64;
            share.is_user = true;
            // Asked behind the read: who takes over says so before it lets the first byte be read.
            self.waits_for_kernel = kernel.takeovers(share)? != share.cleared;
        }
        if self.waits_for_kernel {
            self.hold(bytes);
            return Ok(self.send_held(to, kernel)?.unwrap_or(Next::Wait));
        }
        let wrote = match (&*to).write(bytes) {
            Ok(n) => n,
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted => 0,
                kind => return Ok(Next::Failed(Side::Destination, kind)),
            },
        };
        self.count_sent(wrote);
        if wrote < bytes.len() {
            // No more is read until this went: the sender's window closes when nobody reads.
            self.hold(&bytes[wrote..]);
            return Ok(Next::Wait);
        }
        self.say_progress(is_more, kernel)?;
        Ok(Next::Wait)
    }

    /// What the kernel redirected before user space took over is with TCP.
    fn is_clear(&mut self, kernel: &impl Kernel) -> Result<bool, ProxyError> {
        let Some(share) = &mut self.share else {
            return Ok(true);
        };
        let takeovers = kernel.takeovers(share)?;
        self.waits_for_kernel = takeovers != share.cleared && !kernel.is_drained(share)?;
        if !self.waits_for_kernel {
            // While bytes are left to user space and not sent, the kernel redirects none.
            share.cleared = takeovers;
        }
        Ok(!self.waits_for_kernel)
    }

    fn hold(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
    }

    fn count_sent(&mut self, bytes: usize) {
        self.sent += bytes as u64;
        if let Some(share) = &mut self.share {
            share.sent += bytes as u64;
        }
    }

    /// Where more is likely to lie there it is not said each time: it costs a system call.
    fn say_progress(&mut self, is_more: bool, kernel: &impl Kernel) -> Result<(), ProxyError> {
        const OFTEN: u64 = 512 << 10;
        if let Some(share) = &mut self.share
            && (!is_more || share.received - share.said >= OFTEN)
        {
            share.said = share.received;
            kernel.say_progress(share)?;
        }
        Ok(())
    }

    /// `None` when all of it went.
    fn send_held(
        &mut self,
        to: &TcpStream,
        kernel: &impl Kernel,
    ) -> Result<Option<Next>, ProxyError> {
        if self.waits_for_kernel && !self.is_clear(kernel)? {
            return Ok(Some(Next::Soon));
        }
        match (&*to).write(&self.held[self.held_from..]) {
            Ok(n) => {
                self.count_sent(n);
                self.held_from += n;
                if self.has_held() {
                    return Ok(Some(Next::Wait));
                }
                // Idle connections keep no buffer.
                self.held = Vec::new();
                self.held_from = 0;
                self.say_progress(false, kernel)?;
                Ok(None)
            }
            Err(error) => Ok(Some(match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::Interrupted => Next::Wait,
                kind => Next::Failed(Side::Destination, kind),
            })),
        }
    }

    fn end(&mut self, to: &TcpStream, kernel: &impl Kernel) -> Result<Next, ProxyError> {
        if self.is_shut {
            return Ok(Next::Wait);
        }
        if let Some(share) = &self.share
            && !kernel.is_drained(share)?
        {
            return Ok(Next::Soon);
        }
        match to.shutdown(Shutdown::Write) {
            Ok(()) => {
                self.is_shut = true;
                Ok(Next::Wait)
            }
            Err(error) => Ok(Next::Failed(Side::Destination, error.kind())),
        }
    }
}
