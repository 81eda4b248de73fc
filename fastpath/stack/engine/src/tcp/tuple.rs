//! What names a connection: two addresses and two ports.
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// An IPv6 address; IPv4's are mapped (RFC 4291, 2.5.5.2). In two halves, so that it is compared and hashed by words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Address([u64; 2]);

impl Address {
    pub(crate) const ANY: Address = Address([0, 0]);
}

impl From<IpAddr> for Address {
    fn from(address: IpAddr) -> Address {
        match address {
            IpAddr::V4(v4) => Address([0, 0xffff_0000_0000 | u64::from(v4.to_bits())]),
            IpAddr::V6(v6) => {
                let bits = v6.to_bits();
                Address([(bits >> 64) as u64, bits as u64])
            }
        }
    }
}

impl From<Address> for IpAddr {
    fn from(address: Address) -> IpAddr {
        let [high, low] = address.0;
        if address.is_v4() {
            return IpAddr::V4((low as u32).into());
        }
        IpAddr::V6(Ipv6Addr::from_bits(
            u128::from(high) << 64 | u128::from(low),
        ))
    }
}

impl Address {
    pub(crate) fn is_v4(self) -> bool {
        self.0[0] == 0 && self.0[1] >> 32 == 0xffff
    }
}

/// The four of a connection, from our side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Tuple {
    pub(crate) local: Address,
    pub(crate) peer: Address,
    pub(crate) local_port: u16,
    pub(crate) peer_port: u16,
}

impl Tuple {
    pub(crate) fn new(local: SocketAddr, peer: SocketAddr) -> Tuple {
        Tuple {
            local: local.ip().into(),
            peer: peer.ip().into(),
            local_port: local.port(),
            peer_port: peer.port(),
        }
    }

    pub(crate) fn local(&self) -> SocketAddr {
        SocketAddr::new(self.local.into(), self.local_port)
    }

    pub(crate) fn peer(&self) -> SocketAddr {
        SocketAddr::new(self.peer.into(), self.peer_port)
    }

    /// All bytes, for keyed hashes whose results peers see.
    pub(crate) fn words(&self) -> [u64; 5] {
        let [a, b] = self.local.0;
        let [c, d] = self.peer.0;
        [a, b, c, d, self.ports()]
    }

    fn ports(&self) -> u64 {
        u64::from(self.local_port) << 16 | u64::from(self.peer_port)
    }
}

/// Secret keys of the hash tables, so that peers cannot choose tuples that collide.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HashKeys([u64; 4]);

impl HashKeys {
    pub(crate) fn new(seed: &[u8; 32]) -> HashKeys {
        let mut keys = [0; 4];
        for (key, bytes) in keys.iter_mut().zip(seed.chunks_exact(8)) {
            let mut word = [0; 8];
            word.copy_from_slice(bytes);
            // Odd constants of SplitMix64 keep a seed of zeros from being a key of zeros.
            *key = u64::from_le_bytes(word) ^ 0x9e37_79b9_7f4a_7c15;
        }
        keys[1] ^= 0xbf58_476d_1ce4_e5b9;
        keys[2] ^= 0x94d0_49bb_1331_11eb;
        HashKeys(keys)
    }

    pub(crate) fn tuple(&self, tuple: &Tuple) -> u32 {
        let [a, b, c, d, ports] = tuple.words();
        let [k, l, m, n] = self.0;
        let hash = folded(a ^ k, b ^ l);
        let hash = folded(hash ^ c ^ m, d ^ n);
        folded(hash ^ ports, k | 1) as u32
    }
}

/// Both halves of the product: cheap, and each bit of either factor reaches all bits.
fn folded(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}
