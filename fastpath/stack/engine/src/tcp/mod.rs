//! TCP.
mod sender;
mod seq;
