//! RFC 9293, Transmission Control Protocol.
mod segments;
mod states;
mod table;
