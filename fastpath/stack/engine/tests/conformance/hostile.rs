//! Peers that mean harm: memory stays bounded and is counted, nothing panics, other connections go on.
mod blind;
mod floods;
mod garbage;
mod memory;
mod stream;
