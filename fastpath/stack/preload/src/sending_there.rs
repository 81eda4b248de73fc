//! Whose a datagram is to send, of a socket whose stack is in another process: what can be said of it at once, before it is on its way.
use crate::control;
use crate::policy;
use crate::rows;
use crate::sending::destination;
use crate::state::State;
use crate::told::To;
use hopscope_stack_abi::address;
use hopscope_stack_engine::{Outbound, SocketKind};
use hopscope_stack_instance::programs::datagram::Head;
use hopscope_stack_instance::programs::table::Phase;
use hopscope_stack_instance::programs::wire::Name;
use nix::libc;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;

/// Without the headers of UDP and IPv4, and of UDP.
const LONGEST_V4: usize = 65_507;
const LONGEST_V6: usize = 65_527;

/// Of every path (RFC 791).
const ALWAYS_FITS: usize = 548;

pub enum Way {
    There(Head),
    /// By the kernel's socket.
    Kernel(OwnedFd),
}

impl State {
    pub fn way_of_datagram(&mut self, name: Name, len: usize, to: To<'_>) -> Result<Way, i32> {
        // Whatever becomes of the datagram (inet_send_prepare).
        self.port_of_datagrams(name)?;
        let row = rows::row(name).ok_or(libc::ENETDOWN)?;
        let of = rows::datagrams(name).unwrap_or_default();
        let ipv6 = row.ipv6 != 0;
        let connected = rows::state(name).phase == Phase::Connected;
        let asked = destination(to.address, ipv6)?;
        let to_v4 = || match asked {
            Some(peer) => peer.ip().to_canonical().is_ipv4(),
            None => {
                matches!(address::from_bytes(row.address(false)), Ok(Some(peer)) if peer.ip().to_canonical().is_ipv4())
            }
        };
        let outbound = control::parse(to.control, ipv6, !ipv6 || to_v4());
        let source = outbound.ok().and_then(|outbound| outbound.source);
        let sends = |peer: SocketAddr| match source {
            Some(source) => policy::is_own(&self.handed, source),
            None => policy::leads_to(&self.handed, SocketKind::Udp, peer),
        };
        let kernels = match asked {
            Some(peer) => of.everywhere && (!connected || of.by_kernel) && !sends(peer),
            None => of.by_kernel,
        };
        if kernels {
            return self.kernels_datagrams(name).map(Way::Kernel);
        }
        let outbound = outbound?;
        if !ipv6 && len > usize::from(u16::MAX) {
            return Err(libc::EMSGSIZE);
        }
        let peer = match asked {
            Some(peer) if peer.port() == 0 => return Err(libc::EINVAL),
            Some(peer) => peer,
            None if connected => address::from_bytes(row.address(false))?.ok_or(libc::EIO)?,
            None => return Err(libc::EDESTADDRREQ),
        };
        self.can_go(peer, ipv6, &outbound)?;
        let longest = match peer.ip().to_canonical() {
            IpAddr::V4(_) => LONGEST_V4,
            IpAddr::V6(_) => LONGEST_V6,
        };
        let is_long = len > longest
            || of.unfragmented
                && len > ALWAYS_FITS
                && len > self.longest_datagram_there(name, peer.ip())?;
        if is_long {
            return Err(libc::EMSGSIZE);
        }
        Ok(Way::There(Head {
            peer: Some(peer),
            local: outbound.source,
            hop_limit: outbound.hop_limit,
            traffic_class: outbound.traffic_class,
            ..Head::default()
        }))
    }

    /// As the engine has it, which would tell of it too late.
    fn can_go(&self, peer: SocketAddr, ipv6: bool, to: &Outbound) -> Result<(), i32> {
        if !ipv6 && peer.is_ipv6() {
            return Err(libc::EAFNOSUPPORT);
        }
        let ip = peer.ip().to_canonical();
        if policy::is_no_way(&self.handed, SocketKind::Udp, peer) {
            return Err(libc::ENETUNREACH);
        }
        let is_foreign =
            |source: IpAddr| !(policy::is_own(&self.handed, source) || source.is_loopback());
        match to.source {
            _ if ip.is_unspecified() => return Err(libc::EINVAL),
            Some(source) if source.is_ipv4() != ip.is_ipv4() => return Err(libc::EINVAL),
            Some(source) if is_foreign(source) && source.is_ipv4() => {
                return Err(libc::ENETUNREACH);
            }
            Some(source) if is_foreign(source) => return Err(libc::EINVAL),
            _ => {}
        }
        if policy::is_broadcast(&self.handed, ip) {
            return Err(libc::EACCES);
        }
        match policy::has_way(&self.handed, ip) || ip.is_multicast() || ip.is_loopback() {
            true => Ok(()),
            false => Err(libc::ENETUNREACH),
        }
    }
}
