//! Both ends of a virtio-net queue: when to tell the other end, and what that costs.
//!
//! [`policy`] decides when an end notifies the other. [`sim`] runs a driver and a device against each
//! other in virtual time, with the same policies. [`ring`] has both ends of a queue over guest memory, and
//! [`end`] puts a policy on each, and [`observe`] notes what it does. [`vhost`] is how a front end says where the
//! queues are, and [`serve`] a back end with all of that, a socket and a packet port. [`drive`] is a front end,
//! a driver without a virtual machine. [`stat`] shows what a back end that runs has counted.
#![deny(unsafe_code)]

mod common;
pub mod drive;
pub mod end;
pub mod events;
pub mod notifier;
pub mod observe;
pub mod policy;
pub mod ring;
pub mod serve;
pub mod shadow;
pub mod sim;
pub mod stat;
pub mod vhost;

pub use common::Negotiated;
pub use hopscope_event::Ns;
