//! UDP (RFC 768): sockets, their ports, and what they receive and send.
mod bind;
mod calls;
mod datagrams;
mod demux;
mod options;
mod queued;
mod receive;
mod socket;
mod state;
mod transmit;

pub(crate) use state::{Lower, Udp};

#[cfg(test)]
mod tests;
