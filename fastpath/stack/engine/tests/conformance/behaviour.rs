//! What a connection does, besides the state table and recovery.
mod acknowledging;
mod closing;
mod device_mtu;
mod icmp;
mod lifetime;
mod opening;
mod options;
mod sending;
mod windows;
