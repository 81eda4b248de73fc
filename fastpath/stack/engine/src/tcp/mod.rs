//! TCP (RFC 9293): [`layer::Tcp`] has all connections, [`connection::Connection`] is one, and [`sender::Sender`] its sending half
//! without bytes.
mod challenge;
mod connecting;
mod connection;
mod context;
mod cookies;
mod demux;
mod handshake;
mod layer;
mod listener;
mod options;
mod ports;
mod replies;
mod request;
mod secrets;
mod segment;
mod sender;
mod seq;
mod slab;
mod sockets;
mod time_wait;
mod tuple;

pub(crate) use layer::{Host, Tcp};
pub(crate) use sockets::Socket;
