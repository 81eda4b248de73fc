//! The system calls and the memory shared with the kernel: the one module with unsafe code. What
//! it hands out is safe to use in any order.
#![allow(unsafe_code)]

mod bpf;
mod filter;
mod ingress;
mod interface;
mod long_frames;
mod map;
mod mmsg;
mod socket;
mod tpacket;
mod tun;
mod vectors;
mod vnet;
mod xsk;

pub(crate) use bpf::{Redirect, XDP_FLAGS_DRV_MODE, XDP_FLAGS_SKB_MODE};
pub use filter::FilterStep;
pub(crate) use filter::{filter_outgoing, steer_fanout};
pub(crate) use ingress::drop_packets_to;
pub(crate) use interface::{Interface, device_is_up, device_mtu};
pub(crate) use mmsg::SendBatch;
pub(crate) use socket::{bind_packet, get_option, open_socket, set_option};
pub(crate) use tpacket::{Popped, Received, RxRing};
pub(crate) use tun::{TAP_HDR_LEN, accept as accept_offloads, open_tap, tap_name};
pub use vectors::PARTS_MAX;
pub(crate) use vectors::Vectors;
pub(crate) use vnet::{PACKET_HDR_LEN, received};
pub(crate) use xsk::{Xsk, XskOptions};
