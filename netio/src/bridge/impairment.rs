//! What becomes of a frame: a pure function of the seed and the frame's number in its direction.
//! A test can compute the truth beside the bridge, and a frame more or less changes no other's.
use hopscope_event::Ns;
use hopscope_openloop::random::{SplitMix64, mix};

/// What a direction does to its frames. Probabilities are from 0 to 1 and independent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Impairments {
    pub drop: f64,
    /// A TCP segment that ends what was written (PSH), the first time that it comes: the last one of a response.
    pub drop_tail: f64,
    pub duplicate: f64,
    /// Held back until `reorder_by` later frames were passed on.
    pub reorder: f64,
    pub reorder_by: u32,
    /// A held frame goes after this time in any case: nothing may come behind it.
    pub reorder_wait: Ns,
    /// One bit of the frame is turned over.
    pub corrupt: f64,
    pub delay: Ns,
    /// Added to the delay: evenly from 0 to this. It never reorders: a frame whose turn comes
    /// before that of its predecessor waits for it.
    pub jitter: Ns,
}

impl Default for Impairments {
    /// A perfect cable.
    fn default() -> Impairments {
        Impairments {
            drop: 0.0,
            drop_tail: 0.0,
            duplicate: 0.0,
            reorder: 0.0,
            reorder_by: 3,
            reorder_wait: Ns(100_000_000),
            corrupt: 0.0,
            delay: Ns(0),
            jitter: Ns(0),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("{what} {value} is not a probability: it must be from 0 to 1")]
pub struct ImpairmentsError {
    pub what: &'static str,
    pub value: f64,
}

impl Impairments {
    pub(super) fn check(&self) -> Result<(), ImpairmentsError> {
        let all = [
            ("drop", self.drop),
            ("drop_tail", self.drop_tail),
            ("duplicate", self.duplicate),
            ("reorder", self.reorder),
            ("corrupt", self.corrupt),
        ];
        match all.iter().find(|(_, p)| !(0.0..=1.0).contains(p)) {
            Some(&(what, value)) => Err(ImpairmentsError { what, value }),
            None => Ok(()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fate {
    /// Nothing else holds for a dropped frame.
    pub dropped: bool,
    /// Dropped if it is the last segment of something, for the first time.
    pub tail_dropped: bool,
    pub duplicated: bool,
    pub reordered: bool,
    /// The bit that is turned over, modulo the frame's length in bits: bit 0 is the lowest of the
    /// first byte.
    pub corrupted: Option<u64>,
    /// Before it waits for predecessors, or is held back.
    pub delay: Ns,
}

impl Fate {
    /// Of frame `number`, counted from 0 in its direction.
    pub fn of(seed: u64, number: u64, impairments: &Impairments) -> Fate {
        let mut random = SplitMix64::new(mix(seed) ^ mix(number.wrapping_add(1)));
        // All are drawn, whatever comes of them: one setting does not move the others' outcomes.
        // Units are from (0, 1]: a probability of 0 never happens, one of 1 always does.
        let mut happens = |probability: f64| random.next_unit() <= probability;
        let dropped = happens(impairments.drop);
        let duplicated = happens(impairments.duplicate);
        let reordered = happens(impairments.reorder);
        let corrupted = happens(impairments.corrupt);
        let bit = random.next_u64();
        let jitter = (random.next_unit() * impairments.jitter.0 as f64) as u64;
        let tail_dropped = random.next_unit() <= impairments.drop_tail;
        if dropped {
            return Fate {
                dropped,
                ..Fate::default()
            };
        }
        Fate {
            dropped,
            tail_dropped,
            duplicated,
            reordered,
            corrupted: corrupted.then_some(bit),
            delay: Ns(impairments.delay.0 + jitter),
        }
    }
}
