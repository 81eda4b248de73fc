//! Options of a UDP socket.
use crate::config::SocketBuffers;
use crate::ip::HeaderOptions;
use crate::{SocketError, SocketOption};

#[derive(Debug, Clone, Copy)]
pub(super) struct UdpOptions {
    pub reuse_address: bool,
    pub reuse_port: bool,
    pub v6_only: bool,
    /// In bytes, as getsockopt tells them.
    pub send_buffer: u32,
    pub receive_buffer: u32,
    pub header: HeaderOptions,
}

impl UdpOptions {
    pub(super) fn new(buffers: &SocketBuffers) -> UdpOptions {
        UdpOptions {
            reuse_address: false,
            reuse_port: false,
            v6_only: false,
            send_buffer: buffers.send.initial,
            receive_buffer: buffers.receive.initial,
            header: HeaderOptions::default(),
        }
    }

    /// # Errors
    /// Invalid, NoOption (TCP's).
    pub(super) fn set(
        &mut self,
        option: SocketOption,
        is_bound: bool,
        buffers: &SocketBuffers,
    ) -> Result<(), SocketError> {
        match option {
            SocketOption::ReuseAddress(on) => self.reuse_address = on,
            SocketOption::ReusePort(on) => self.reuse_port = on,
            SocketOption::V6Only(_) if is_bound => return Err(SocketError::Invalid),
            SocketOption::V6Only(on) => self.v6_only = on,
            SocketOption::SendBuffer(bytes) => self.send_buffer = buffers.send_bytes(bytes),
            SocketOption::ReceiveBuffer(bytes) => {
                self.receive_buffer = buffers.receive_bytes(bytes)
            }
            _ => return self.header.set(option),
        }
        Ok(())
    }

    /// # Errors
    /// NoOption.
    pub(super) fn get(&self, like: SocketOption) -> Result<SocketOption, SocketError> {
        Ok(match like {
            SocketOption::ReuseAddress(_) => SocketOption::ReuseAddress(self.reuse_address),
            SocketOption::ReusePort(_) => SocketOption::ReusePort(self.reuse_port),
            SocketOption::V6Only(_) => SocketOption::V6Only(self.v6_only),
            SocketOption::SendBuffer(_) => SocketOption::SendBuffer(self.send_buffer),
            SocketOption::ReceiveBuffer(_) => SocketOption::ReceiveBuffer(self.receive_buffer),
            _ => return self.header.get(like),
        })
    }
}
