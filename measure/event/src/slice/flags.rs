//! What was out of the ordinary with a packet.
use core::fmt;
use core::ops::{BitOr, BitOrAssign};

/// Bits; values are part of the file format and of the contract with the kernel programs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct SliceFlags(pub u32);

macro_rules! flags {
    ($($name:ident = $bit:literal $word:literal $what:literal),* $(,)?) => {
        impl SliceFlags {
            $(#[doc = $what] pub const $name: SliceFlags = SliceFlags(1 << $bit);)*
            const NAMES: &'static [(SliceFlags, &'static str)] = &[$((SliceFlags::$name, $word)),*];
        }
    };
}

flags! {
    SPLIT = 0 "split" "A segment that software GSO cut from a larger packet: stamps up to the cut are those of the larger one.",
    MERGED = 1 "merged" "GRO or the socket's queue merged it with others.",
    COALESCED = 2 "coalesced" "Its copy was made from the buffer of another packet.",
    DROPPED = 3 "dropped" "The kernel freed it with a reason; `drop_reason` has it.",
    CROSS_CPU = 4 "cross-cpu" "Two successive stamps are of different processors.",
    QUEUED = 5 "queued" "It left after another call than the one that wrote its data: it has no stamps of the call.",
    READER_AWAKE = 6 "reader-awake" "Its arrival woke nobody: the reader was awake or already woken.",
    OTHER_WOKEN = 7 "other-woken" "Another thread than the reader was woken by it: the stamps of waking were taken out.",
    NO_PAYLOAD = 8 "no-payload" "It carries no data for a reader; its way ends in the transport.",
    QDISC_BYPASSED = 9 "qdisc-bypass" "The device has a queueing discipline and the packet went past it.",
    PARTIAL = 10 "partial" "Only part of it was read; it ended before the rest was.",
    RETRANSMIT = 11 "retransmit" "TCP sent these bytes before.",
    FORWARDED = 12 "forwarded" "It reached a second device after its first.",
    CALL_FULL = 13 "call-full" "More packets ended in one receiving call than are remembered: it has no stamps after the copy.",
    AMBIGUOUS = 14 "ambiguous" "It was read, and it is not known by which call.",
    PEEKED = 15 "peeked" "A call with MSG_PEEK copied it before it was read: that copy is not its copy.",
    OFO_QUEUED = 16 "ofo-queue" "TCP put it into the socket's out-of-order queue: it waited there for bytes before its own.",
    REORDERED = 17 "reordered" "It came to its socket after bytes that follow its own.",
    TX_UNSEEN = 18 "tx-unseen" "This kernel sent it and its sending side was not followed: it took longer than its stamps show.",
}

impl SliceFlags {
    pub const NONE: SliceFlags = SliceFlags(0);

    pub const fn contains(self, other: SliceFlags) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for SliceFlags {
    type Output = SliceFlags;
    fn bitor(self, rhs: SliceFlags) -> SliceFlags {
        SliceFlags(self.0 | rhs.0)
    }
}

impl BitOrAssign for SliceFlags {
    fn bitor_assign(&mut self, rhs: SliceFlags) {
        *self = *self | rhs;
    }
}

/// Their names, with `+` between; `-` for none. Bits without a name are shown as a number.
impl fmt::Display for SliceFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        let mut separator = "";
        for (flag, name) in SliceFlags::NAMES {
            if self.contains(*flag) {
                write!(f, "{separator}{name}")?;
                separator = "+";
                rest &= !flag.0;
            }
        }
        match (rest, separator) {
            (0, "") => f.write_str("-"),
            (0, _) => Ok(()),
            (bits, _) => write!(f, "{separator}{bits:#x}"),
        }
    }
}

impl fmt::Debug for SliceFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SliceFlags({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_is_documented() {
        let page = include_str!("../../../../docs/slices.md");
        for (_, name) in SliceFlags::NAMES {
            let row =
                |line: &&str| line.starts_with('|') && line.contains(&alloc::format!("`{name}`"));
            assert!(page.lines().any(|line| row(&line)), "{name}");
        }
    }
}
