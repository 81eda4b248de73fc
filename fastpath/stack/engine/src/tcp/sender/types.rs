//! What the sending half is told and answers.
use crate::Ns;
use crate::tcp::seq::{Seq, SeqRange};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SentKind {
    /// Begins at snd_nxt.
    Fresh,
    /// What `next_retransmission` named, or the start of it.
    Retransmission,
    /// What [`TimerAction::Probe`] wanted: new bytes or the last segment again (RFC 8985, 7.3).
    TailProbe,
}

/// A segment with ACK whose number lies in [snd_una, snd_nxt]; also those that only carry a window or data.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ack<'a> {
    pub(crate) ack: Seq,
    /// The option's blocks as they came, a DSACK block included; nothing of them is checked yet.
    pub(crate) sack: &'a [SeqRange],
    /// When the echoed timestamp (TSecr) was made, on the clock of `now`, rounded down to its tick (RFC 7323, 4.).
    pub(crate) ts_echo: Option<Ns>,
    /// It has payload, SYN or FIN: then it is no duplicate ACK (RFC 5681, 2).
    pub(crate) carries_data: bool,
    /// The window is not that of the segment before.
    pub(crate) changes_window: bool,
    /// Bytes in the send buffer that were never sent and fit in the window (F-RTO wants to send some: RFC 5682, 2.1, 2b).
    pub(crate) unsent_bytes: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct AckOutcome {
    /// What snd_una advanced by.
    pub(crate) acked_bytes: u32,
    /// What the peer got according to this ACK and to none before, by SACK or snd_una.
    pub(crate) delivered_bytes: u32,
    /// A duplicate ACK in the sense of RFC 5681, 2.
    pub(crate) duplicate: bool,
    /// An acknowledged segment's round-trip time.
    pub(crate) rtt: Option<Ns>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SenderTimer {
    /// RFC 6298.
    Retransmission,
    /// RFC 8985, 7.2.
    TailProbe,
    /// RFC 8985, 6.3.
    Reordering,
}

/// What the owner does after a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimerAction {
    /// It was not due, or what it waited for came.
    Nothing,
    /// There may be something in `next_retransmission` now.
    Retransmit,
    /// A retransmission time-out: as above; the owner gives up where `retransmits` or its user time-out is exceeded.
    TimedOut,
    /// Send one segment of new bytes regardless of cwnd where there are some and the window allows; else retransmit `last`. Report it as
    /// [`SentKind::TailProbe`]. Without either call `probe_not_sent`.
    Probe { last: SeqRange },
}
