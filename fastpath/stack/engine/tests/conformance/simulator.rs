//! A seeded network between two engines.
pub mod bulk;
mod device_mtu;
mod goodput;
pub mod network;
pub mod path;
pub mod random;
mod repair;
mod segmentation;
mod shared;
