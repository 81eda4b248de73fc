//! What a connection does when something has happened, by its stage and its work.
use super::connection::{Connection, Stage};
use super::{ClientError, Shared, Work, exchange, stream};
use crate::sockets::Sockets;

/// Does what can be done now; true: it is over, in order.
///
/// # Errors
/// The connection's.
pub(super) fn turn(
    connection: &mut Connection,
    sockets: &mut Sockets<'_>,
    shared: &mut Shared,
) -> Result<bool, ClientError> {
    if connection.stage == Stage::Connecting {
        if let Some(error) = sockets.engine.take_error(connection.id)? {
            return Err(error.into());
        }
        if !sockets.engine.readiness(connection.id)?.writable {
            return Ok(shared.stops);
        }
        connection.stage = Stage::Open;
        connection.moved = sockets.now;
        shared.counts.accepted += 1;
    }
    match shared.plan.work {
        Work::Send => stream::send(connection, sockets, shared),
        Work::Receive => stream::receive(connection, sockets, shared),
        Work::Echo | Work::Http => exchange::turn(connection, sockets, shared),
    }
}
