//! One stamp of a packet, in eight bytes.
use super::Point;

/// What probes cost on the stamp's processor since the packet's stamp before it, the own cost of
/// neither counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inner {
    Ns(u16),
    /// More than fits into the field.
    Over,
    /// The stamp before was taken on another processor.
    OtherCpu,
}

/// Bits 0..32: since the record's `t0_ns`, in ns, or counted events where the recording is of an
/// event; `u32::MAX` stands for that much or more. Bits 32..48: probe cost since the packet's stamp
/// before, in ns; 0xffff more than that, 0xfffe another processor. Bits 48..64: processor + 1.
/// All zero: no stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(transparent)]
pub struct StampWord(pub u64);

impl StampWord {
    pub const INNER_OVER: u16 = 0xffff;
    pub const INNER_OTHER_CPU: u16 = 0xfffe;

    pub const fn new(delta: u32, inner: u16, cpu: u16) -> StampWord {
        StampWord(delta as u64 | (inner as u64) << 32 | (cpu as u64 + 1) << 48)
    }

    pub const fn is_taken(self) -> bool {
        self.0 >> 48 != 0
    }

    /// ns (or events) since the first stamp.
    pub const fn delta(self) -> u32 {
        self.0 as u32
    }

    /// The delta did not fit: the true one is this or more.
    pub const fn is_saturated(self) -> bool {
        self.delta() == u32::MAX
    }

    pub const fn inner(self) -> Inner {
        match (self.0 >> 32) as u16 {
            StampWord::INNER_OVER => Inner::Over,
            StampWord::INNER_OTHER_CPU => Inner::OtherCpu,
            ns => Inner::Ns(ns),
        }
    }

    pub const fn cpu(self) -> Option<u16> {
        match (self.0 >> 48) as u16 {
            0 => None,
            above => Some(above - 1),
        }
    }
}

/// The stamps of a packet that were taken, in the order of points.
pub(super) fn taken(stamps: &[StampWord; Point::MAX]) -> impl Iterator<Item = (Point, StampWord)> {
    Point::ALL
        .iter()
        .zip(stamps)
        .filter(|(_, word)| word.is_taken())
        .map(|(point, word)| (*point, *word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back() {
        let word = StampWord::new(7, 9, 0);
        assert!(word.is_taken());
        assert_eq!((word.delta(), word.cpu()), (7, Some(0)));
        assert_eq!(word.inner(), Inner::Ns(9));
        assert!(!StampWord::default().is_taken());
        assert!(StampWord::new(u32::MAX, 0, 3).is_saturated());
        assert_eq!(StampWord::new(0, 0xfffe, 511).inner(), Inner::OtherCpu);
    }
}
