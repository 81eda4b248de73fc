//! Bytes in one direction.
use super::connection::{Connection, Stage};
use super::{ClientError, PIECE_BYTES, Shared};
use crate::sockets::Sockets;
use hopscope_stack_engine::SocketError;

/// True once the other end has everything: it acknowledged all, or closed.
pub(super) fn send(
    connection: &mut Connection,
    sockets: &mut Sockets<'_>,
    shared: &mut Shared,
) -> Result<bool, ClientError> {
    let id = connection.id;
    let most = shared.plan.bytes.unwrap_or(u64::MAX);
    while connection.stage == Stage::Open {
        let left = most - connection.sent;
        if left == 0 || shared.stops {
            sockets.end_of_stream(id);
            connection.stage = Stage::Draining;
            break;
        }
        let len = left.min(PIECE_BYTES as u64) as usize;
        let piece = shared.pattern.stream(connection.sent, len);
        match sockets.send(id, piece) {
            Ok(sent) => {
                connection.sent += sent as u64;
                connection.moved = sockets.now;
                shared.counts.bytes_sent += sent as u64;
            }
            Err(SocketError::WouldBlock) => break,
            Err(error) => return Err(error.into()),
        }
    }
    // What comes back is nothing to us, but its end is.
    loop {
        match sockets.discard(id, &mut shared.piece) {
            Ok(0) if connection.stage == Stage::Draining => return Ok(true),
            // It reads no more: what is sent from now on is lost.
            Ok(0) => return Ok(shared.stops),
            Ok(read) => shared.counts.bytes_received += read as u64,
            Err(SocketError::WouldBlock) => break,
            Err(error) => return Err(error.into()),
        }
    }
    let (unacknowledged, _) = sockets.engine.unacknowledged_bytes(id)?;
    Ok(connection.stage == Stage::Draining && unacknowledged == 0)
}

/// True when enough has come, or the other end closed and nobody said what is enough.
pub(super) fn receive(
    connection: &mut Connection,
    sockets: &mut Sockets<'_>,
    shared: &mut Shared,
) -> Result<bool, ClientError> {
    let most = shared.plan.bytes.unwrap_or(u64::MAX);
    loop {
        if connection.received >= most || shared.stops {
            return Ok(true);
        }
        let len = (most - connection.received).min(PIECE_BYTES as u64) as usize;
        let read = if shared.plan.verify && !connection.is_wrong {
            let read = sockets.recv(connection.id, &mut shared.piece[..len])?;
            let expected = shared.pattern.stream(connection.received, read);
            connection.is_wrong = shared.piece[..read] != *expected;
            shared.counts.corrupt += u64::from(connection.is_wrong);
            read
        } else {
            sockets.discard(connection.id, &mut shared.piece[..len])?
        };
        if read == 0 {
            return match shared.plan.bytes {
                None => Ok(true),
                Some(expected) => Err(ClientError::Ended {
                    received: connection.received,
                    expected,
                }),
            };
        }
        connection.received += read as u64;
        connection.moved = sockets.now;
        shared.counts.bytes_received += read as u64;
    }
}
