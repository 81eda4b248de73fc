//! Messages to the back end, each with its answer before the next.
use super::error::DriveError;
use crate::vhost::{HEADER_LEN, Request};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use std::io::{self, IoSlice, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

/// A back end that takes longer to answer is not one.
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) struct Wire {
    socket: UnixStream,
    /// `REPLY_ACK` was negotiated: what has no answer of its own is answered by 0, or by an error.
    pub(super) acks: bool,
}

impl Wire {
    /// # Errors
    /// Connection refused.
    pub(super) fn connect(path: &Path) -> Result<Wire, DriveError> {
        let failed = |source| DriveError::Connect {
            path: path.into(),
            source,
        };
        Wire::new(UnixStream::connect(path).map_err(failed)?).map_err(failed)
    }

    /// Waits for one back end that connects; the socket goes as soon as it has.
    ///
    /// # Errors
    /// The path cannot be listened on, or `stop` was readable before.
    pub(super) fn accept(
        path: &Path,
        stop: BorrowedFd<'_>,
        ready: &mut dyn FnMut(),
    ) -> Result<Wire, DriveError> {
        let failed = |source| DriveError::Listen {
            path: path.into(),
            source,
        };
        let listener = UnixListener::bind(path).map_err(failed)?;
        ready();
        let readable = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut both = [readable(listener.as_fd()), readable(stop)];
        let came = loop {
            match poll(&mut both, PollTimeout::NONE) {
                Err(Errno::EINTR) => {}
                Err(errno) => break Err(failed(errno.into())),
                Ok(_) if both[0].any() == Some(true) => break listener.accept().map_err(failed),
                Ok(_) => break Err(DriveError::NobodyCame),
            }
        };
        // Gone already, or not ours to remove: nobody else is to find it.
        let _ = std::fs::remove_file(path);
        Wire::new(came?.0).map_err(failed)
    }

    fn new(socket: UnixStream) -> io::Result<Wire> {
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_write_timeout(Some(PATIENCE))?;
        let acks = false;
        Ok(Wire { socket, acks })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Sends the message, with descriptors, and waits for the reply if it has one.
    ///
    /// # Errors
    /// The back end refuses, does not reply, or disconnected.
    pub(super) fn say(
        &mut self,
        request: &Request,
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<u64, DriveError> {
        let need_reply = self.acks && !request.is_answered();
        let failed = |source: io::Error| DriveError::NoAnswer {
            request: name(request),
            source,
        };
        self.send(&request.encode(need_reply), descriptors)
            .map_err(failed)?;
        if !(need_reply || request.is_answered()) {
            return Ok(0);
        }
        let mut header = [0; HEADER_LEN];
        self.socket.read_exact(&mut header).map_err(failed)?;
        request.answer_len(&header)?;
        let mut answer = [0; 8];
        self.socket.read_exact(&mut answer).map_err(failed)?;
        let code = u64::from_ne_bytes(answer);
        if need_reply && code != 0 {
            let request = name(request);
            return Err(DriveError::Refused { request, code });
        }
        Ok(code)
    }

    fn send(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let numbers: Vec<RawFd> = descriptors.iter().map(|fd| fd.as_raw_fd()).collect();
        let rights = [ControlMessage::ScmRights(&numbers)];
        let control = if numbers.is_empty() { &[] } else { &rights[..] };
        let parts = [IoSlice::new(bytes)];
        let flags = MsgFlags::MSG_NOSIGNAL;
        let sent = sendmsg::<()>(self.socket.as_raw_fd(), &parts, control, flags, None)?;
        if sent == bytes.len() {
            Ok(())
        } else {
            Err(io::ErrorKind::WriteZero.into())
        }
    }
}

/// The message's name without what it carries.
fn name(request: &Request) -> String {
    let text = format!("{request:?}");
    let end = text.find(['(', ' ']).unwrap_or(text.len());
    text[..end].to_owned()
}
