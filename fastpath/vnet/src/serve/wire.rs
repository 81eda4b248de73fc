//! Messages from a socket, without ever waiting for the rest of one.
use super::descriptors::receive;
use super::error::Broken;
use crate::vhost::{HEADER_LEN, Header, Request};
use nix::sys::socket::{MsgFlags, send};
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

pub(super) struct Wire {
    pub(super) socket: UnixStream,
    /// Of the message that is being read: header, then payload.
    bytes: Vec<u8>,
    header: Option<Header>,
    descriptors: Vec<OwnedFd>,
}

pub(super) enum Read {
    Message(Header, Request, Vec<OwnedFd>),
    /// Nothing more is there now.
    Later,
    /// The front end has closed its end.
    Ended,
}

impl Wire {
    pub(super) fn new(socket: UnixStream) -> Wire {
        Wire {
            socket,
            bytes: Vec::new(),
            header: None,
            descriptors: Vec::new(),
        }
    }

    /// # Errors
    /// Malformed messages, and protocol errors.
    pub(super) fn read(&mut self) -> Result<Read, Broken> {
        loop {
            let payload_len = self.header.map_or(0, |header| header.payload_len as usize);
            let whole = HEADER_LEN + payload_len;
            // Never beyond this message: the next one's descriptors are its own.
            let missing = whole - self.bytes.len();
            if missing > 0 {
                let mut part = vec![0; missing];
                let done = receive(&self.socket, &mut part, &mut self.descriptors);
                match done {
                    Ok(0) if self.bytes.is_empty() => return Ok(Read::Ended),
                    Ok(0) => return Err(Broken::Short(self.bytes.len())),
                    Ok(len) => self.bytes.extend_from_slice(&part[..len]),
                    Err(error) => match error.kind() {
                        ErrorKind::WouldBlock => return Ok(Read::Later),
                        ErrorKind::Interrupted => {}
                        ErrorKind::ConnectionReset => return Ok(Read::Ended),
                        _ => return Err(error.into()),
                    },
                }
                continue;
            }
            match self.header {
                Some(_) => return self.whole(),
                None => {
                    let head: [u8; HEADER_LEN] = std::array::from_fn(|n| self.bytes[n]);
                    self.header = Some(Header::decode(&head)?);
                }
            }
        }
    }

    fn whole(&mut self) -> Result<Read, Broken> {
        let bytes = std::mem::take(&mut self.bytes);
        let descriptors = std::mem::take(&mut self.descriptors);
        let Some(header) = self.header.take() else {
            return Ok(Read::Later);
        };
        let request = Request::decode(header, &bytes[HEADER_LEN..], descriptors.len())?;
        Ok(Read::Message(header, request, descriptors))
    }

    /// # Errors
    /// The front end is gone, or has no room for an answer: it asked and does not read.
    pub(super) fn answer(&self, bytes: &[u8]) -> Result<(), Broken> {
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        match send(self.socket.as_raw_fd(), bytes, flags) {
            Ok(len) if len == bytes.len() => Ok(()),
            Ok(_) => Err(Broken::NotReading),
            Err(nix::errno::Errno::EAGAIN) => Err(Broken::NotReading),
            Err(errno) => Err(io::Error::from(errno).into()),
        }
    }
}
