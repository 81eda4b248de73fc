//! TCP.
mod sender;
