//! RFC 863: everything is thrown away, compared with what was expected where that is known.
use super::server::{Next, Service};
use super::{AppCounts, PIECE_BYTES};
use crate::sockets::Sockets;
use hopscope_load::connections::pattern::Pattern;
use hopscope_stack_engine::{SocketError, SocketId};

pub struct Discard {
    piece: Box<[u8]>,
    expected: Option<Pattern>,
}

impl Discard {
    /// With a seed, the bytes of `hopscope load tcp stream` with that seed are expected.
    #[must_use]
    pub fn new(seed: Option<u64>) -> Discard {
        Discard {
            piece: vec![0; PIECE_BYTES].into(),
            expected: seed.map(|seed| Pattern::new(seed, PIECE_BYTES)),
        }
    }
}

#[derive(Default)]
pub struct Place {
    received: u64,
    is_wrong: bool,
}

impl Service for Discard {
    type Connection = Place;

    fn serve(
        &mut self,
        sockets: &mut Sockets<'_>,
        id: SocketId,
        place: &mut Place,
        counts: &mut AppCounts,
    ) -> Result<Next, SocketError> {
        loop {
            let read = match &self.expected {
                Some(expected) if !place.is_wrong => {
                    let read = sockets.recv(id, &mut self.piece)?;
                    // Once is enough: what follows a lost byte is all wrong.
                    place.is_wrong = self.piece[..read] != *expected.stream(place.received, read);
                    counts.corrupt += u64::from(place.is_wrong);
                    read
                }
                _ => sockets.discard(id, &mut self.piece)?,
            };
            if read == 0 {
                return Ok(Next::Close);
            }
            place.received += read as u64;
            counts.bytes_received += read as u64;
        }
    }
}
