//! What a peer must not be able to guess: initial sequence numbers (RFC 6528), timestamp offsets (RFC 7323, 5.4),
//! ephemeral ports (RFC 6056, 3.3.3).
use super::seq::Seq;
use super::tuple::Tuple;
use crate::Ns;
use crate::wire::siphash::SipKey;

/// Of TSval: a millisecond, as Linux has it (RFC 7323, 5.4).
pub(crate) const TIMESTAMP_TICK: Ns = Ns::from_ms(1);

#[derive(Debug, Clone, Copy)]
pub(crate) struct Secrets {
    isn: SipKey,
    timestamps: SipKey,
    ports: SipKey,
}

impl Secrets {
    pub(crate) fn new(seed: &[u8; 32]) -> Secrets {
        Secrets {
            isn: SipKey::derived(seed, 16),
            timestamps: SipKey::derived(seed, 17),
            ports: SipKey::derived(seed, 18),
        }
    }

    /// RFC 6528, 3: a clock plus a keyed hash of the tuple. The clock's tick is 64 ns, as Linux': it wraps in 4.5 minutes, longer than
    /// a segment lives, and outruns a connection of 125 Gbit/s.
    pub(crate) fn isn(&self, now: Ns, tuple: &Tuple) -> Seq {
        let hash = self.isn.hash_words(tuple.words()) as u32;
        Seq(hash.wrapping_add((now.0 >> 6) as u32))
    }

    /// One for each pair of addresses, so that TSval goes on from connection to connection (RFC 6191).
    pub(crate) fn timestamp_offset(&self, tuple: &Tuple) -> u32 {
        let [a, b, c, d, _] = tuple.words();
        self.timestamps.hash_words([a, b, c, d]) as u32
    }

    /// Where the search for a port begins.
    pub(crate) fn port_offset(&self, tuple: &Tuple) -> u32 {
        let words = Tuple {
            local_port: 0,
            ..*tuple
        };
        self.ports.hash_words(words.words()) as u32
    }
}

/// TSval at `now`.
pub(crate) fn timestamp(now: Ns, offset: u32) -> u32 {
    ((now.0 / TIMESTAMP_TICK.0) as u32).wrapping_add(offset)
}

/// When the clock showed `value`, which lies at most 2³¹ ticks back; `None` for one in the future, which we never sent.
pub(crate) fn timestamp_age(now: Ns, offset: u32, value: u32) -> Option<Ns> {
    let ticks = timestamp(now, offset).wrapping_sub(value) as i32;
    let made = (now.0 / TIMESTAMP_TICK.0).checked_sub(u64::try_from(ticks).ok()?)?;
    Some(Ns(made * TIMESTAMP_TICK.0))
}
