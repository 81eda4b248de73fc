//! RFC 864: sends until the other end closes, and reads nothing into what it says.
use super::server::{Next, Service};
use super::{AppCounts, PIECE_BYTES};
use crate::sockets::Sockets;
use hopscope_load::connections::pattern::Pattern;
use hopscope_stack_engine::{SocketError, SocketId};

pub struct Chargen {
    piece: Box<[u8]>,
    pattern: Pattern,
}

impl Chargen {
    /// The bytes are those of `hopscope load tcp serve --service source` with that seed.
    #[must_use]
    pub fn new(seed: u64) -> Chargen {
        Chargen {
            piece: vec![0; PIECE_BYTES].into(),
            pattern: Pattern::new(seed, PIECE_BYTES),
        }
    }
}

#[derive(Default)]
pub struct Place {
    sent: u64,
}

impl Service for Chargen {
    type Connection = Place;

    fn serve(
        &mut self,
        sockets: &mut Sockets<'_>,
        id: SocketId,
        place: &mut Place,
        counts: &mut AppCounts,
    ) -> Result<Next, SocketError> {
        loop {
            match sockets.discard(id, &mut self.piece) {
                Ok(0) => return Ok(Next::Close),
                Ok(read) => counts.bytes_received += read as u64,
                Err(SocketError::WouldBlock) => break,
                Err(error) => return Err(error),
            }
        }
        loop {
            let piece = self.pattern.stream(place.sent, PIECE_BYTES);
            let sent = sockets.send(id, piece)? as u64;
            place.sent += sent;
            counts.bytes_sent += sent;
        }
    }
}
