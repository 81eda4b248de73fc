//! What is to be known of one time besides its number.
use std::ops::{BitOr, BitOrAssign};

/// Bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct PieceFlags(u16);

macro_rules! flags {
    ($($name:ident = $bit:literal $word:literal $what:literal),* $(,)?) => {
        impl PieceFlags {
            $(#[doc = $what] pub const $name: PieceFlags = PieceFlags(1 << $bit);)*
            const NAMES: &'static [(PieceFlags, &'static str)] =
                &[$((PieceFlags::$name, $word)),*];
        }
    };
}

flags! {
    BELOW_ZERO = 0 "below_zero" "More was to be taken out than was measured: shown as 0.",
    OTHER_CPU = 1 "other_cpu" "It ends on another processor than it began on: what other probes cost in it is not known.",
    INNER_OVER = 2 "inner_over" "Probes inside it cost more than a stamp can hold: not taken out.",
    COST_UNKNOWN = 3 "cost_unknown" "The cost of a hit inside it was not measured: not taken out.",
    SATURATED = 4 "saturated" "It is this long or longer.",
    MERGED = 5 "merged" "Several regions in one: a point between them was not stamped.",
    OVERLAP = 6 "overlap" "Several regions at once.",
    PART = 7 "part" "Not the whole of the region that it is named after.",
    OTHERS_IN_WAIT = 8 "others_in_wait" "Probes ran on its processor while the packet waited: whether they kept it waiting is not known, and their cost is left in.",
    HEAD_UNSEEN = 9 "head_unseen" "It began before the first stamp: it is this long or longer.",
}

impl PieceFlags {
    pub const NONE: PieceFlags = PieceFlags(0);
    /// Not all is taken out that should be.
    pub const UNCERTAIN: PieceFlags = PieceFlags(
        Self::OTHER_CPU.0 | Self::INNER_OVER.0 | Self::COST_UNKNOWN.0 | Self::OTHERS_IN_WAIT.0,
    );
    /// It is this long or longer, and in no distribution.
    pub const OR_LONGER: PieceFlags = PieceFlags(Self::SATURATED.0 | Self::HEAD_UNSEEN.0);

    pub const fn contains(self, other: PieceFlags) -> bool {
        self.0 & other.0 == other.0
    }

    pub const fn intersects(self, other: PieceFlags) -> bool {
        self.0 & other.0 != 0
    }

    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let named = PieceFlags::NAMES.iter();
        named
            .filter(move |(flag, _)| self.contains(*flag))
            .map(|(_, name)| *name)
    }
}

impl BitOr for PieceFlags {
    type Output = PieceFlags;
    fn bitor(self, rhs: PieceFlags) -> PieceFlags {
        PieceFlags(self.0 | rhs.0)
    }
}

impl BitOrAssign for PieceFlags {
    fn bitor_assign(&mut self, rhs: PieceFlags) {
        *self = *self | rhs;
    }
}
