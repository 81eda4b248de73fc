//! Bytes of sockets in chunks of one pool, so that an idle connection has none.
mod pool;
mod receive;
mod send;

pub(crate) use pool::{LEAST_BYTES, Pool};
pub(crate) use receive::ReceiveBuffer;
pub(crate) use send::SendBuffer;
