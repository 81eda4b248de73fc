//! Another stack at the other end: smoltcp, which shares nothing with the engine, in virtual time.
mod echo;
mod smoltcp_peer;
