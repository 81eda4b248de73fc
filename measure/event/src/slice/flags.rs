//! What was out of the ordinary with a packet.

crate::flags! {
    /// Bits; values are part of the file format and of the contract with the kernel programs.
    pub struct SliceFlags(pub u32);
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
