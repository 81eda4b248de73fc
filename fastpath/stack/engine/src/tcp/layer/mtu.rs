//! The path's MTU: as a call asks for it, and where the device's changed.
use super::state::{Host, Tcp};
use crate::tcp::sockets::Socket;
use crate::{SocketError, SocketId};
use std::net::IpAddr;

impl Tcp {
    /// # Errors
    /// NotConnected, BadSocket.
    pub(crate) fn path_mtu(&self, id: SocketId) -> Result<u16, SocketError> {
        match self.sockets.get(self.sockets.index(id)?) {
            Some(Socket::Connecting(connecting)) => Ok(connecting.mtu),
            Some(Socket::Connection(connection)) if connection.attached => Ok(connection.mtu),
            _ => Err(SocketError::NotConnected),
        }
    }

    /// As each connection of Linux finds it when it sends next (tcp_current_mss). What was announced to peers stays.
    pub(crate) fn sync_mtus(&mut self, host: &mut Host) {
        for slot in 0..self.sockets.slots() {
            match self.sockets.get_mut(slot) {
                Some(Socket::Connecting(connecting)) => {
                    let peer = IpAddr::from(connecting.tuple.peer);
                    connecting.mtu = host.ip.mtu(host.now, peer);
                }
                Some(Socket::Connection(connection)) if connection.attached => {
                    let peer = IpAddr::from(connection.tuple.peer);
                    connection.set_mtu(host.now, host.ip.mtu(host.now, peer));
                    self.settle(host, slot);
                }
                _ => {}
            }
        }
    }
}
