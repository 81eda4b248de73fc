//! The stamp that each packet carries as the first bytes of its payload. Writer and reader share
//! this file; docs/load-packets.md shows it to people.
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 1 | magic, `0x75` |
//! | 1 | 1 | run: tells frames of another run or trial from ours |
//! | 2 | 4 | sequence number, low 32 bits |
//! | 6 | 2 | flow, low 16 bits |
//! | 8 | 5 | intended time, low 40 bits of the TSC |
//! | 13 | 3 | lateness: sent minus intended, as [`lateness`] encodes it |
//! | 16 | 2 | checksum |
//!
//! All big-endian. It fills the payload of the smallest Ethernet frame (64 bytes with FCS) with UDP
//! or ICMP over IPv4. The checksum is RFC 1071's over the stamp alone, which has a second use: the
//! whole stamp then sums to zero, so the UDP, TCP or ICMP checksum around it never changes with it.
use super::checksum;
use hopscope_event::Tsc;

pub const STAMP_BYTES: usize = 18;
/// Wireshark 4.0 took none of 20,480 datagrams that begin so, of every run, for another protocol's. With
/// the two highest bits 10 it is RTP's version, and runs from 200 on may be RTCP (RFC 3550, section 6.4);
/// with 11 it is QUIC's long header (RFC 9000, section 17.2).
pub const MAGIC: u8 = 0x75;

const SEQ: usize = 2;
const FLOW: usize = 6;
const INTENDED: usize = 8;
const LATENESS: usize = 13;
const CHECKSUM: usize = 16;

/// 64 bytes, less FCS and the headers of Ethernet, IPv4 and UDP.
const SMALLEST_PAYLOAD: usize = 64 - 4 - 14 - 20 - 8;
const _: () = assert!(STAMP_BYTES == SMALLEST_PAYLOAD);
const _: () = assert!(
    SEQ + 4 == FLOW && FLOW + 2 == INTENDED && INTENDED + 5 == LATENESS && LATENESS + 3 == CHECKSUM
);
const _: () = assert!(CHECKSUM + 2 == STAMP_BYTES && STAMP_BYTES.is_multiple_of(2));

pub const INTENDED_BITS: u32 = 40;
const MANTISSA_BITS: u32 = 19;

/// What a stamp says; fields are as narrow as in the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamped {
    pub run: u8,
    pub seq: u32,
    pub flow: u16,
    /// Low [`INTENDED_BITS`] bits.
    pub intended: u64,
    /// Encoded.
    pub lateness: u32,
}

/// Ticks in 24 bits: exact below 2^19 (0.2 ms at 2.6 GHz), then 19 significant bits (2 parts per
/// million), up to 2^50. Five bits of exponent, 19 of mantissa. Any encoding has one meaning.
#[inline]
pub fn lateness(ticks: u64) -> u32 {
    let bits = u64::BITS - ticks.leading_zeros();
    let shift = bits.saturating_sub(MANTISSA_BITS).min(31);
    // 2^50 ticks are five days: the schedule ends long before.
    let mantissa = (ticks >> shift).min((1 << MANTISSA_BITS) - 1);
    shift << MANTISSA_BITS | mantissa as u32
}

/// Ticks, rounded down as the encoder did.
pub fn lateness_ticks(encoded: u32) -> u64 {
    let mantissa = u64::from(encoded & ((1 << MANTISSA_BITS) - 1));
    mantissa << (encoded >> MANTISSA_BITS & 31)
}

impl Stamped {
    #[inline]
    pub fn new(run: u8, seq: u64, flow: u32, intended: Tsc, sent: Tsc) -> Stamped {
        Stamped {
            run,
            seq: seq as u32,
            flow: flow as u16,
            intended: intended.0 & ((1 << INTENDED_BITS) - 1),
            lateness: lateness((sent - intended).max(0) as u64),
        }
    }

    #[inline]
    pub fn to_bytes(self) -> [u8; STAMP_BYTES] {
        let first = u64::from(MAGIC) << 56
            | u64::from(self.run) << 48
            | u64::from(self.seq) << 16
            | u64::from(self.flow);
        let second = self.intended << 24 | u64::from(self.lateness & 0xff_ffff);
        let words = |n: u64| (n >> 48) + (n >> 32 & 0xffff) + (n >> 16 & 0xffff) + (n & 0xffff);
        let mut bytes = [0; STAMP_BYTES];
        bytes[..8].copy_from_slice(&first.to_be_bytes());
        bytes[8..16].copy_from_slice(&second.to_be_bytes());
        bytes[16..].copy_from_slice(&checksum::finish(words(first) + words(second)));
        bytes
    }

    /// `None` where the magic or the checksum is wrong.
    #[inline]
    pub fn from_bytes(bytes: &[u8; STAMP_BYTES]) -> Option<Stamped> {
        if bytes[0] != MAGIC || !checksum::holds(checksum::sum(bytes)) {
            return None;
        }
        let word = |at: usize| u64::from_be_bytes(std::array::from_fn(|i| bytes[at + i]));
        let (first, second) = (word(0), word(8));
        Some(Stamped {
            run: (first >> 48) as u8,
            seq: (first >> 16) as u32,
            flow: first as u16,
            intended: second >> 24,
            lateness: second as u32 & 0xff_ffff,
        })
    }
}

/// Every stamp that differs from `bytes` in one byte and is whole: what a damaged one may have been.
/// The checksum alone leaves some dozen; which of them was sent is known to whoever sent it.
pub fn repairs(bytes: &[u8; STAMP_BYTES]) -> impl Iterator<Item = Stamped> {
    let bytes = *bytes;
    (0..STAMP_BYTES).flat_map(move |at| {
        (1..=255u8).filter_map(move |flip| {
            let mut other = bytes;
            other[at] ^= flip;
            Stamped::from_bytes(&other)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_stamp() -> impl Strategy<Value = Stamped> {
        let numbers = (any::<u8>(), any::<u32>(), any::<u16>());
        (numbers, 0..1u64 << INTENDED_BITS, 0..1u32 << 24).prop_map(
            |((run, seq, flow), intended, lateness)| Stamped {
                run,
                seq,
                flow,
                intended,
                lateness,
            },
        )
    }

    /// The bytes are a contract: a change of any is a new magic.
    #[test]
    fn layout() {
        let stamp = Stamped {
            run: 0x01,
            seq: 0x0203_0405,
            flow: 0x0607,
            intended: 0x08_090a_0b0c,
            lateness: 0x0d_0e0f,
        };
        let mut expected = [0; STAMP_BYTES];
        expected[0] = 0x75;
        (1..16).for_each(|i| expected[i] = i as u8);
        expected[16..].copy_from_slice(&[0x52, 0xbf]);
        assert_eq!(stamp.to_bytes(), expected);
    }

    proptest! {
            #[test]
            fn comes_back_and_sums_to_zero(stamp in any_stamp()) {
                let bytes = stamp.to_bytes();
                prop_assert_eq!(Stamped::from_bytes(&bytes), Some(stamp));
                prop_assert!(checksum::holds(checksum::sum(&bytes)));
            }

            #[test]
            fn one_damaged_byte_is_noticed_and_the_original_is_among_the_repairs(
                stamp in any_stamp(), at in 0..STAMP_BYTES, flip in 1..=255u8,
            ) {
                let mut bytes = stamp.to_bytes();
                bytes[at] ^= flip;
                prop_assert_eq!(Stamped::from_bytes(&bytes), None);
                prop_assert!(repairs(&bytes).any(|repaired| repaired == stamp));
            }

            #[test]
            fn lateness_is_exact_when_short_and_within_two_parts_per_million(ticks in 0..1u64 << 50) {
                let back = lateness_ticks(lateness(ticks));
                prop_assert!(back <= ticks);
                if ticks < 1 << MANTISSA_BITS {
    prop_assert_eq!(back, ticks)
    } else {
    prop_assert!(ticks - back <= ticks >> (MANTISSA_BITS - 1))
    }
            }
        }
}
