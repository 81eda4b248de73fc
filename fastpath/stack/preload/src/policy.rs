//! Whose a socket is, by its addresses.
use hopscope_stack_instance::handed::Handed;
use std::net::IpAddr;

/// The stack answers at this address.
pub fn is_own(handed: &Handed, address: IpAddr) -> bool {
    let address = address.to_canonical();
    handed
        .reach
        .addresses
        .iter()
        .any(|(own, _)| *own == address)
}

/// A connection to there is the stack's: it has a way, and no rule says otherwise. What is this machine's own by
/// definition stays in the kernel.
pub fn leads_to(handed: &Handed, remote: IpAddr) -> bool {
    let remote = remote.to_canonical();
    if remote.is_loopback() || remote.is_unspecified() || remote.is_multicast() {
        return false;
    }
    let within = |(prefix, bits): &(IpAddr, u8)| is_within(remote, *prefix, *bits);
    // Broadcasts, too.
    let is_broadcast = |(prefix, bits): &(IpAddr, u8)| is_last(remote, *prefix, *bits);
    let limited = IpAddr::V4(std::net::Ipv4Addr::BROADCAST);
    if remote == limited || handed.reach.addresses.iter().any(is_broadcast) {
        return false;
    }
    if handed.policy.kernel.iter().any(within) {
        return false;
    }
    let mut routes = handed.reach.routes.iter().map(|(to, bits, _)| (*to, *bits));
    handed.reach.addresses.iter().any(within) || routes.any(|route| within(&route))
}

fn is_within(address: IpAddr, prefix: IpAddr, bits: u8) -> bool {
    let (address, prefix, len) = match (address, prefix) {
        (IpAddr::V4(a), IpAddr::V4(p)) => (u128::from(a.to_bits()), u128::from(p.to_bits()), 32),
        (IpAddr::V6(a), IpAddr::V6(p)) => (a.to_bits(), p.to_bits(), 128),
        _ => return false,
    };
    let shift = u32::from(len - bits.min(len));
    address.checked_shr(shift).unwrap_or(0) == prefix.checked_shr(shift).unwrap_or(0)
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
    fn prefixes() {
        let within =
            |a: &str, p: &str, bits| is_within(a.parse().unwrap(), p.parse().unwrap(), bits);
        assert!(within("10.0.0.77", "10.0.0.2", 24));
        assert!(!within("10.0.1.77", "10.0.0.2", 24));
        assert!(within("192.0.2.1", "0.0.0.0", 0));
        assert!(within("fd00::9", "::", 0));
        assert!(within("fd00::9", "fd00::2", 64));
        assert!(!within("fd00::9", "10.0.0.2", 0));
        assert!(!within("10.0.0.3", "10.0.0.2", 32));
        let last = |a: &str, bits| is_last(a.parse().unwrap(), "10.0.0.2".parse().unwrap(), bits);
        assert!(last("10.0.0.255", 24) && last("10.0.0.3", 30) && last("10.255.255.255", 8));
        assert!(!last("10.0.0.254", 24) && !last("10.0.0.3", 31) && !last("10.0.1.255", 24));
    }
}
