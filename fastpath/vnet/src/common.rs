//! What a front end and a back end of virtio-net have in common: neither is built on the other.
pub(crate) mod eventfd;
pub(crate) mod feature;
pub(crate) mod header;

pub use feature::Negotiated;
