//! Who has which local port: what bind(2) and listen(2) may take, as inet_csk_get_port has it.
use super::tuple::Address;
use std::collections::HashMap;

/// A socket's claim to a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) slot: u32,
    pub(crate) address: Address,
    /// The wildcard address is of IPv6 alone.
    pub(crate) v6_only: bool,
    /// A socket of IPv6: its wildcard is of both families, but for `v6_only`.
    pub(crate) ipv6: bool,
    pub(crate) reuse_address: bool,
    pub(crate) reuse_port: bool,
    pub(crate) listening: bool,
}

impl Claim {
    fn overlaps(&self, other: &Claim) -> bool {
        let same_family = self.ipv6 == other.ipv6 || self.address != Address::ANY;
        self.address == other.address && same_family || self.covers(other) || other.covers(self)
    }

    /// As a wildcard.
    fn covers(&self, other: &Claim) -> bool {
        if self.address != Address::ANY {
            return false;
        }
        let other_v4 = other.address.is_v4() || (other.address == Address::ANY && !other.ipv6);
        match (self.ipv6, other_v4) {
            (true, true) => !self.v6_only,
            (true, false) | (false, true) => true,
            (false, false) => other.address == Address::ANY && !other.v6_only,
        }
    }

    /// As inet_csk_bind_conflict: with SO_REUSEADDR only who listens keeps others out, from bind and from listen.
    fn conflicts(&self, other: &Claim) -> bool {
        let address = self.reuse_address && other.reuse_address && !other.listening;
        let port = self.reuse_port && other.reuse_port;
        self.slot != other.slot && self.overlaps(other) && !address && !port
    }
}

/// Of one port.
#[derive(Debug, Default)]
struct Use {
    claims: Vec<Claim>,
    /// For each address of ours that has some: mostly one.
    connections: Vec<Connections>,
}

/// Connections and TIME-WAITs of an address, whose sockets no longer hold a claim.
#[derive(Debug)]
struct Connections {
    address: Address,
    count: u32,
    /// Those of them without SO_REUSEADDR and SO_REUSEPORT.
    exclusive: u32,
}

impl Connections {
    /// Whether they keep the port from `claim`.
    fn conflict(&self, claim: &Claim) -> bool {
        let of_claim = if claim.address == Address::ANY {
            self.address.is_v4() != claim.ipv6 || claim.ipv6 && !claim.v6_only
        } else {
            self.address == claim.address
        };
        let shared = (claim.reuse_address || claim.reuse_port) && self.exclusive == 0;
        of_claim && !shared && !claim.listening
    }
}

#[derive(Debug, Default)]
pub(crate) struct Ports {
    ports: HashMap<u16, Use>,
}

impl Ports {
    /// Whether `claim` could have `port`.
    pub(crate) fn is_free(&self, port: u16, claim: &Claim) -> bool {
        let Some(used) = self.ports.get(&port) else {
            return true;
        };
        !used.connections.iter().any(|of| of.conflict(claim))
            && !used.claims.iter().any(|other| claim.conflicts(other))
    }

    /// Whether a connection may be given `port` by itself: nothing was bound to it.
    pub(crate) fn is_unbound(&self, port: u16) -> bool {
        self.ports.get(&port).is_none_or(|u| u.claims.is_empty())
    }

    pub(crate) fn claim(&mut self, port: u16, claim: Claim) {
        self.release(port, claim.slot);
        self.ports.entry(port).or_default().claims.push(claim);
    }

    pub(crate) fn release(&mut self, port: u16, slot: u32) {
        if let Some(used) = self.ports.get_mut(&port) {
            used.claims.retain(|c| c.slot != slot);
            self.tidy(port);
        }
    }

    pub(crate) fn connect(&mut self, address: Address, port: u16, exclusive: bool) {
        let connections = &mut self.ports.entry(port).or_default().connections;
        let exclusive = u32::from(exclusive);
        if let Some(of) = connections.iter_mut().find(|of| of.address == address) {
            of.count += 1;
            of.exclusive += exclusive;
        } else {
            connections.push(Connections {
                address,
                count: 1,
                exclusive,
            });
        }
    }

    pub(crate) fn disconnect(&mut self, address: Address, port: u16, exclusive: bool) {
        let Some(used) = self.ports.get_mut(&port) else {
            return;
        };
        let connections = &mut used.connections;
        if let Some(at) = connections.iter().position(|of| of.address == address) {
            let of = &mut connections[at];
            of.count -= 1;
            of.exclusive -= u32::from(exclusive && of.exclusive > 0);
            if of.count == 0 {
                connections.swap_remove(at);
            }
        }
        self.tidy(port);
    }

    fn tidy(&mut self, port: u16) {
        let empty = |u: &Use| u.claims.is_empty() && u.connections.is_empty();
        if self.ports.get(&port).is_some_and(empty) {
            self.ports.remove(&port);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    fn claim(slot: u32, address: &str) -> Claim {
        let address: IpAddr = address.parse().unwrap();
        Claim {
            slot,
            address: if address.is_unspecified() {
                Address::ANY
            } else {
                address.into()
            },
            v6_only: false,
            ipv6: address.is_ipv6(),
            reuse_address: false,
            reuse_port: false,
            listening: false,
        }
    }

    #[test]
    fn wildcards_overlap_their_families() {
        let mut ports = Ports::default();
        ports.claim(80, claim(0, "0.0.0.0"));
        assert!(!ports.is_free(80, &claim(1, "10.0.0.1")));
        assert!(!ports.is_free(80, &claim(1, "::")));
        assert!(ports.is_free(80, &claim(1, "fd00::1")));
        assert!(ports.is_free(
            80,
            &Claim {
                v6_only: true,
                ..claim(1, "::")
            }
        ));
        ports.release(80, 0);
        assert!(ports.is_free(80, &claim(1, "10.0.0.1")));
    }

    #[test]
    fn an_address_of_ipv4_is_the_same_one_mapped() {
        let mut ports = Ports::default();
        ports.claim(80, claim(0, "10.0.0.1"));
        let mapped = Claim {
            ipv6: true,
            ..claim(1, "10.0.0.1")
        };
        assert!(!ports.is_free(80, &mapped));
        assert!(ports.is_free(81, &mapped));
    }

    #[test]
    fn reuse_needs_both_and_no_listener() {
        let reusing = |slot, listening| Claim {
            reuse_address: true,
            listening,
            ..claim(slot, "10.0.0.1")
        };
        let mut ports = Ports::default();
        ports.claim(80, reusing(0, false));
        assert!(ports.is_free(80, &reusing(1, false)));
        assert!(!ports.is_free(80, &claim(1, "10.0.0.1")));
        // listen(2), beside one that is bound and no more.
        assert!(ports.is_free(80, &reusing(1, true)));
        ports.claim(80, reusing(0, true));
        assert!(!ports.is_free(80, &reusing(1, false)));
        assert!(!ports.is_free(80, &reusing(1, true)));
    }

    #[test]
    fn connections_keep_the_port_from_those_without_reuse() {
        let mut ports = Ports::default();
        let reusing = Claim {
            reuse_address: true,
            ..claim(1, "10.0.0.1")
        };
        let ours = reusing.address;
        ports.connect(ours, 80, true);
        assert!(!ports.is_free(80, &reusing));
        ports.disconnect(ours, 80, true);
        ports.connect(ours, 80, false);
        assert!(ports.is_free(80, &reusing));
        assert!(!ports.is_free(80, &claim(1, "10.0.0.1")));
        ports.disconnect(ours, 80, false);
        assert!(ports.ports.is_empty());
    }

    /// As inet_rcv_saddr_equal: an address of ours that has no connection at the port can be bound to it.
    #[test]
    fn connections_keep_the_port_of_their_address() {
        let mut ports = Ports::default();
        ports.connect(claim(0, "10.0.0.1").address, 80, true);
        assert!(ports.is_free(80, &claim(1, "10.0.0.2")));
        assert!(ports.is_free(80, &claim(1, "fd00::1")));
        for overlapping in ["10.0.0.1", "0.0.0.0", "::"] {
            assert!(!ports.is_free(80, &claim(1, overlapping)), "{overlapping}");
        }
        let only_v6 = Claim {
            v6_only: true,
            ..claim(1, "::")
        };
        assert!(ports.is_free(80, &only_v6));
        ports.connect(claim(0, "fd00::1").address, 80, true);
        assert!(!ports.is_free(80, &only_v6));
        ports.disconnect(claim(0, "10.0.0.1").address, 80, true);
        assert!(ports.is_free(80, &claim(1, "0.0.0.0")));
    }
}
