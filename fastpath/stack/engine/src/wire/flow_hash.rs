//! Which of several engines on one device has a connection.
use std::net::{IpAddr, SocketAddr};

/// What the hash begins with, and how a word is mixed in.
pub const SEED: u32 = 0x9e37_79b9;
pub const MULTIPLIER: u32 = 0x85eb_ca6b;
pub const SHIFT: u32 = 15;

/// Of a packet that `peer` sends to `local`: engine `flow_hash % engines` has the connection.
///
/// A function of the packet's 32-bit words alone, without a key, so that a filter in the kernel (classic BPF for
/// PACKET_FANOUT_CBPF, eBPF for TUNSETSTEERINGEBPF) computes the same:
///
/// ```text
/// h = 0x9e3779b9
/// for each word w of (source address, destination address, source port << 16 | destination port, 0):
///     h = (h ^ w) * 0x85ebca6b        (mod 2^32)
///     h = h ^ (h >> 15)
/// ```
///
/// An IPv4 address is one word, an IPv6 address four, all in network order; a packet with options or extension
/// headers has its ports after them. A peer can choose which engine it loads, by its ports; that is all it learns.
#[must_use]
pub fn flow_hash(peer: SocketAddr, local: SocketAddr) -> u32 {
    let hash = address(address(SEED, peer.ip()), local.ip());
    let ports = u32::from(peer.port()) << 16 | u32::from(local.port());
    // The last word lets the lowest bits depend on the highest of the ports.
    word(word(hash, ports), 0)
}

fn address(hash: u32, address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(v4) => word(hash, v4.to_bits()),
        IpAddr::V6(v6) => {
            let bits = v6.to_bits();
            (0..4).fold(hash, |h, i| word(h, (bits >> (96 - 32 * i)) as u32))
        }
    }
}

fn word(hash: u32, word: u32) -> u32 {
    let hash = (hash ^ word).wrapping_mul(MULTIPLIER);
    hash ^ hash >> SHIFT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_engine_has_its_share_of_ports_in_a_row() {
        for (peer, local) in [
            ("10.0.0.1:1", "10.0.0.2:80"),
            ("[fd00::1]:1", "[fd00::2]:80"),
        ] {
            for engines in 2..=4 {
                let mut counts = [0; 4];
                for port in 32_768..=60_999 {
                    let mut peer: SocketAddr = peer.parse().unwrap();
                    peer.set_port(port);
                    let hash = flow_hash(peer, local.parse().unwrap());
                    counts[(hash % engines) as usize] += 1;
                }
                let fair = 28_232 / engines as i32;
                for count in &counts[..engines as usize] {
                    assert!((count - fair).abs() < fair / 20, "{engines}: {counts:?}");
                }
            }
        }
    }

    #[test]
    fn it_does_not_change() {
        let hash = |a: &str, b: &str| flow_hash(a.parse().unwrap(), b.parse().unwrap());
        assert_eq!(hash("10.0.0.1:40000", "10.0.0.2:80"), FIXED.0);
        assert_eq!(hash("[fd00::1]:40000", "[fd00::2]:80"), FIXED.1);
    }

    /// Filters that others load have to agree with it.
    const FIXED: (u32, u32) = (0x3e41_c3a7, 0xff36_e7a9);
}
