//! RFC 862: everything comes back.
use super::server::{Next, Service};
use super::{AppCounts, PIECE_BYTES};
use crate::sockets::Sockets;
use hopscope_stack_engine::{SocketError, SocketId};

/// What cannot be sent yet stays in the receive buffer: the sender sees its window close.
pub struct Echo {
    piece: Box<[u8]>,
}

impl Default for Echo {
    fn default() -> Echo {
        Echo {
            piece: vec![0; PIECE_BYTES].into(),
        }
    }
}

impl Service for Echo {
    type Connection = ();

    fn serve(
        &mut self,
        sockets: &mut Sockets<'_>,
        id: SocketId,
        _: &mut (),
        counts: &mut AppCounts,
    ) -> Result<Next, SocketError> {
        loop {
            let there = sockets.peek(id, &mut self.piece)?;
            if there == 0 {
                return Ok(Next::Close);
            }
            let sent = sockets.send(id, &self.piece[..there])?;
            sockets.discard(id, &mut self.piece[..sent])?;
            counts.bytes_received += sent as u64;
            counts.bytes_sent += sent as u64;
        }
    }
}
