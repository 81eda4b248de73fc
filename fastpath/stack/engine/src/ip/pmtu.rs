//! Paths with less MTU than the link (RFC 1191, RFC 8201): a table of fixed size, four places for each hash. An entry that
//! another one pushes out is learned again by the next packet that is too big.
use crate::Ns;
use crate::wire::siphash::SipKey;
use std::net::IpAddr;

/// RFC 8201, 5.3: ten minutes.
const LIFETIME: Ns = Ns::from_ms(600_000);
const SETS: usize = 256;
const WAYS: usize = 4;

#[derive(Debug, Clone, Copy)]
struct Entry {
    destination: IpAddr,
    mtu: u16,
    until: Ns,
}

#[derive(Debug)]
pub(super) struct PathMtus {
    key: SipKey,
    /// None before the first entry: most engines never need it.
    sets: Vec<[Option<Entry>; WAYS]>,
}

impl PathMtus {
    pub(super) fn new(key: SipKey) -> PathMtus {
        PathMtus {
            key,
            sets: Vec::new(),
        }
    }

    pub(super) fn get(&self, now: Ns, destination: IpAddr) -> Option<u16> {
        let set = self.sets.get(self.index(destination))?;
        let mut entries = set.iter().flatten();
        let entry = entries.find(|e| e.destination == destination)?;
        (now < entry.until).then_some(entry.mtu)
    }

    pub(super) fn set(&mut self, now: Ns, destination: IpAddr, mtu: u16) {
        if self.sets.is_empty() {
            self.sets = vec![[None; WAYS]; SETS];
        }
        let index = self.index(destination);
        let set = &mut self.sets[index];
        let same = set
            .iter()
            .position(|e| e.is_some_and(|e| e.destination == destination));
        let oldest = (0..WAYS).min_by_key(|i| set[*i].map_or(Ns(0), |e| e.until));
        let place = same.or(oldest).unwrap_or(0);
        set[place] = Some(Entry {
            destination,
            mtu,
            until: now + LIFETIME,
        });
    }

    fn index(&self, destination: IpAddr) -> usize {
        if self.sets.is_empty() {
            return 0;
        }
        let hash = match destination {
            IpAddr::V4(v4) => self.key.hash_words([u64::from(v4.to_bits())]),
            IpAddr::V6(v6) => {
                let bits = v6.to_bits();
                self.key.hash_words([bits as u64, (bits >> 64) as u64])
            }
        };
        hash as usize % SETS
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        (self.sets.len() * size_of::<[Option<Entry>; WAYS]>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(i: u32) -> IpAddr {
        IpAddr::V4(i.into())
    }

    #[test]
    fn rfc8201_5_3_an_entry_ages() {
        let mut paths = PathMtus::new(SipKey { k0: 1, k1: 2 });
        assert_eq!(paths.get(Ns(0), path(1)), None);
        paths.set(Ns(0), path(1), 1400);
        paths.set(Ns(5), path(1), 1300);
        assert_eq!(paths.get(LIFETIME, path(1)), Some(1300));
        assert_eq!(paths.get(LIFETIME + Ns(5), path(1)), None);
        assert_eq!(paths.get(Ns(0), path(2)), None);
    }

    #[test]
    fn many_paths_take_no_more_memory() {
        let mut paths = PathMtus::new(SipKey { k0: 1, k1: 2 });
        paths.set(Ns(0), path(0), 1400);
        let bytes = paths.memory_bytes();
        for i in 1..100_000 {
            paths.set(Ns(u64::from(i)), path(i), 1400);
        }
        assert_eq!(paths.memory_bytes(), bytes);
        let known = (0..100_000).filter(|i| paths.get(Ns(1), path(*i)).is_some());
        assert_eq!(known.count(), SETS * WAYS);
        assert_eq!(paths.get(Ns(1), path(99_999)), Some(1400));
    }
}
