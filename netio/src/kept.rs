//! Packets that are kept from the kernel's IP: a packet socket gets frames beside the kernel, which would forward or answer those that are not
//! its own, or count them as errors.
use crate::PortError;
use crate::sys::{Interface, drop_packets_to};
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// As long as one of its descriptors is open, in whichever process.
#[derive(Debug)]
pub struct Kept(OwnedFd);

impl Kept {
    /// Of what arrives at `device` of the calling thread's network namespace, for its own Ethernet address and without a VLAN tag, packets to
    /// `addresses` end behind the packet sockets, and behind programs that were on tcx ingress before.
    ///
    /// # Errors
    /// No such device, a kernel before 6.6, no CAP_BPF or CAP_NET_ADMIN.
    pub fn from_kernel(device: &str, addresses: &[IpAddr]) -> Result<Kept, PortError> {
        let failed = |what: &'static str| move |e| PortError::device(device, what, e);
        let index = Interface::named(device).and_then(|interface| interface.index());
        let index = index.map_err(failed("looking it up"))?;
        let link = drop_packets_to(index, addresses);
        Ok(Kept(
            link.map_err(failed("keeping packets from the kernel"))?,
        ))
    }
}

impl AsFd for Kept {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
