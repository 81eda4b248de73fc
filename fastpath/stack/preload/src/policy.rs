//! Whose a socket is, by its addresses and by the rules that were given.
use hopscope_stack_engine::SocketKind;
use hopscope_stack_instance::handed::Handed;
use hopscope_stack_instance::handed::policy::{Asked, Call, Whose, is_within};
use std::net::{IpAddr, SocketAddr};

/// The stack answers at this address.
pub fn is_own(handed: &Handed, address: IpAddr) -> bool {
    let address = address.to_canonical();
    handed
        .reach
        .addresses
        .iter()
        .any(|(own, _)| *own == address)
}

/// The stack may have a socket that is bound there: at an address of its own that no rule gives to the kernel, or at one of loopback that a
/// rule gives to the stack.
pub fn takes(handed: &Handed, kind: SocketKind, local: SocketAddr) -> bool {
    match local.ip().to_canonical().is_loopback() {
        true => gives_loopback(handed, kind, Call::Bind, local),
        false => is_own(handed, local.ip()) && !is_kernels(handed, kind, local),
    }
}

fn gives_loopback(handed: &Handed, kind: SocketKind, call: Call, at: SocketAddr) -> bool {
    handed.policy.gives_loopback(Asked { kind, call, at })
}

/// What is sent there by a socket of the stack would have to leave this machine.
pub fn is_no_way(handed: &Handed, kind: SocketKind, peer: SocketAddr) -> bool {
    peer.ip().to_canonical().is_loopback() && !gives_loopback(handed, kind, Call::Connect, peer)
}

/// A rule says that a socket which is bound there is the kernel's.
pub fn is_kernels(handed: &Handed, kind: SocketKind, local: SocketAddr) -> bool {
    let asked = Asked {
        kind,
        call: Call::Bind,
        at: local,
    };
    handed.policy.whose(asked) == Some(Whose::Kernel)
}

/// A connection to there is the stack's: it has a way, and no rule says otherwise. What is this machine's own by
/// definition stays in the kernel, if no rule names it.
pub fn leads_to(handed: &Handed, kind: SocketKind, peer: SocketAddr) -> bool {
    let remote = peer.ip().to_canonical();
    if remote.is_loopback() {
        return gives_loopback(handed, kind, Call::Connect, peer);
    }
    if remote.is_unspecified() || remote.is_multicast() {
        return false;
    }
    if is_broadcast(handed, remote) {
        return false;
    }
    let asked = Asked {
        kind,
        call: Call::Connect,
        at: peer,
    };
    if handed.policy.whose(asked) == Some(Whose::Kernel) {
        return false;
    }
    has_way(handed, remote)
}

/// Of one of the stack's prefixes, or of all.
pub fn is_broadcast(handed: &Handed, remote: IpAddr) -> bool {
    let is_last = |(prefix, bits): &(IpAddr, u8)| is_last(remote, *prefix, *bits);
    let limited = IpAddr::V4(std::net::Ipv4Addr::BROADCAST);
    remote == limited || handed.reach.addresses.iter().any(is_last)
}

/// The stack has a way there, whatever the rules say.
pub fn has_way(handed: &Handed, remote: IpAddr) -> bool {
    let within = |(prefix, bits): &(IpAddr, u8)| is_within(remote, *prefix, *bits);
    let mut routes = handed.reach.routes.iter().map(|(to, bits, _)| (*to, *bits));
    handed.reach.addresses.iter().any(within) || routes.any(|route| within(&route))
}

/// The broadcast address of an IPv4 prefix.
fn is_last(address: IpAddr, prefix: IpAddr, bits: u8) -> bool {
    let IpAddr::V4(v4) = address else {
        return false;
    };
    let ones = u32::MAX.checked_shr(bits.into()).unwrap_or(0);
    bits < 31 && is_within(address, prefix, bits) && v4.to_bits() & ones == ones
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broadcasts() {
        let last = |a: &str, bits| is_last(a.parse().unwrap(), "10.0.0.2".parse().unwrap(), bits);
        assert!(last("10.0.0.255", 24) && last("10.0.0.3", 30) && last("10.255.255.255", 8));
        assert!(!last("10.0.0.254", 24) && !last("10.0.0.3", 31) && !last("10.0.1.255", 24));
    }
}
