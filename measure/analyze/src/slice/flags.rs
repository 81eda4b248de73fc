//! What is to be known of one time besides its number.

hopscope_event::flags! {
    /// Bits.
    pub struct PieceFlags(u16);
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
    /// Not all is taken out that should be.
    pub const UNCERTAIN: PieceFlags = PieceFlags(
        Self::OTHER_CPU.0 | Self::INNER_OVER.0 | Self::COST_UNKNOWN.0 | Self::OTHERS_IN_WAIT.0,
    );
    /// It is this long or longer, and in no distribution.
    pub const OR_LONGER: PieceFlags = PieceFlags(Self::SATURATED.0 | Self::HEAD_UNSEEN.0);
}
