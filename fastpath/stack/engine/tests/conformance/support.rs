//! What the tests are written with.
pub mod decode;
pub mod host;
pub mod notation;
pub mod packet;
pub mod repair;
pub mod script;
