//! Echo and discard over UDP (RFC 862, 863): a socket for each address, so that answers come from where the question went.
use super::{AppCounts, PIECE_BYTES};
use crate::InstanceError;
use crate::sockets::Sockets;
use hopscope_stack_engine::{SocketError, SocketId, SocketKind, SocketOption};
use std::net::SocketAddr;

/// Of datagram sockets, with the socket's number.
pub(super) const DATAGRAMS: u64 = 1 << 62;
/// Servers are below, whose answers would be answered without end (OpenBSD's inetd, dg_badinput).
const PORT_MIN: u16 = 1_024;
const NFS: u16 = 2_049;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatagramService {
    Echo,
    Discard,
}

pub struct Datagrams {
    service: DatagramService,
    at: Vec<SocketAddr>,
    piece: Box<[u8]>,
}

impl Datagrams {
    #[must_use]
    pub fn new(service: DatagramService, at: Vec<SocketAddr>) -> Datagrams {
        Datagrams {
            service,
            at,
            piece: vec![0; PIECE_BYTES].into(),
        }
    }

    pub(super) fn start(&self, sockets: &mut Sockets<'_>) -> Result<(), InstanceError> {
        for (n, at) in self.at.iter().enumerate() {
            let at = *at;
            let failed = |source| InstanceError::Listen { at, source };
            let id = sockets.engine.socket(SocketKind::Udp, at.is_ipv6());
            let id = id.map_err(failed)?;
            if at.is_ipv6() {
                let only = SocketOption::V6Only(true);
                let set = sockets.engine.set_option(sockets.now, id, only);
                set.map_err(failed)?;
            }
            sockets.engine.bind(id, at).map_err(failed)?;
            let token = DATAGRAMS | n as u64;
            sockets.engine.set_token(id, token).map_err(failed)?;
        }
        Ok(())
    }

    /// Takes what is there. What cannot be sent yet stays in the receive queue, and beyond that is lost, as UDP is.
    pub(super) fn serve(
        &mut self,
        sockets: &mut Sockets<'_>,
        id: SocketId,
        counts: &mut AppCounts,
    ) {
        loop {
            let (len, peer) = match sockets.peek_from(id, &mut self.piece) {
                Ok(there) => there,
                Err(SocketError::WouldBlock | SocketError::BadSocket) => return,
                // An error of an earlier answer is told once.
                Err(_) => continue,
            };
            let answers = self.service == DatagramService::Echo;
            let is_server = peer.port() < PORT_MIN || peer.port() == NFS;
            if answers && is_server {
                counts.datagrams_refused += 1;
            } else if answers {
                match sockets.send_to(id, &self.piece[..len], peer) {
                    Ok(_) => {
                        counts.datagrams_sent += 1;
                        counts.bytes_sent += len as u64;
                    }
                    Err(SocketError::WouldBlock) => return,
                    Err(_) => counts.failed += 1,
                }
            }
            counts.datagrams_received += 1;
            counts.bytes_received += len as u64;
            sockets.discard_from(id);
        }
    }
}
