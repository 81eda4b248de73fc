//! The sending half of a connection without its bytes: what was sent and when, what arrived, what is lost, and how much may be under way.
//!
//! The owner transmits, in this order: first what [`Sender::next_retransmission`] names, then new bytes as [`Sender::sendable_new`] allows, and
//! reports each segment with [`Sender::sent`]. It hands over each acceptable ACK with [`Sender::acknowledged`], and calls [`Sender::on_timer`] when
//! [`Sender::timer`] is due. SYN is not the sender's: it begins with the connection established. FIN is one more sequence number of a range.
mod config;

pub(crate) use config::SenderConfig;

use crate::config::Congestion;
use crate::tcp::seq::{Seq, SeqRange};
use crate::{Counters, Ns, TcpInfo};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SentKind {
    /// Begins at snd_nxt.
    Fresh,
    /// What [`Sender::next_retransmission`] named, or the start of it.
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
    /// There may be something in [`Sender::next_retransmission`] now.
    Retransmit,
    /// A retransmission time-out: as above; the owner gives up where [`Sender::retransmits`] or its user time-out is exceeded.
    TimedOut,
    /// Send one segment of new bytes regardless of cwnd where there are some and the window allows; else retransmit `last`. Report it as
    /// [`SentKind::TailProbe`]. Without either call [`Sender::probe_not_sent`].
    Probe { last: SeqRange },
}

#[derive(Debug)]
pub(crate) struct Sender {}

#[allow(unused_variables, dead_code)]
impl Sender {
    /// `first`: the sequence number of the first byte (ISS + 1).
    pub(crate) fn new(config: &SenderConfig, first: Seq, now: Ns) -> Sender {
        todo!()
    }

    /// The handshake took `rtt` (`None`: SYN or SYN-ACK was retransmitted, and no timestamp told which one was answered), after so many
    /// retransmissions of SYN or SYN-ACK: RFC 6298, 5.7; RFC 5681, 3.1.
    pub(crate) fn handshake_rtt(&mut self, now: Ns, rtt: Option<Ns>, retransmissions: u32) {
        todo!()
    }

    /// A segment, or several in one frame for the device to cut, was handed to the device. `range` is in sequence numbers: FIN is one.
    pub(crate) fn sent(
        &mut self,
        now: Ns,
        range: SeqRange,
        kind: SentKind,
        counters: &mut Counters,
    ) {
        todo!()
    }

    pub(crate) fn acknowledged(
        &mut self,
        now: Ns,
        ack: &Ack<'_>,
        counters: &mut Counters,
    ) -> AckOutcome {
        todo!()
    }

    /// Of `unsent_bytes` (already bounded by the peer's window) as many as congestion control lets out now: whole segments, or all of them.
    /// Begins a new slow start after idleness (RFC 5681, 4.1).
    pub(crate) fn sendable_new(&mut self, now: Ns, unsent_bytes: u32) -> u32 {
        todo!()
    }

    /// The owner could send a little and waits until it is more (TSO deferral), so that cwnd is the limit although there is room in it.
    pub(crate) fn set_cwnd_limited(&mut self) {
        todo!()
    }

    /// What to retransmit next, at most `max_bytes` of it, if congestion control lets it out now. Changes nothing until it is [`Sender::sent`].
    pub(crate) fn next_retransmission(&self, max_bytes: u32) -> Option<SeqRange> {
        todo!()
    }

    /// The earliest timer, and when.
    pub(crate) fn timer(&self) -> Option<(SenderTimer, Ns)> {
        todo!()
    }

    /// Runs the timers that are due; call again while it answers other than [`TimerAction::Nothing`] and [`Sender::timer`] is still due.
    pub(crate) fn on_timer(&mut self, now: Ns, counters: &mut Counters) -> TimerAction {
        todo!()
    }

    /// Neither new bytes nor the last segment could be sent (RFC 8985, 7.3: then RTO goes on).
    pub(crate) fn probe_not_sent(&mut self, now: Ns) {
        todo!()
    }

    /// The path's MTU or the options changed. Segments that are larger are lost when `lost` (they were dropped for their size): they are
    /// retransmitted without a reduction of cwnd (RFC 1191, 6.4; Linux tcp_simple_retransmit).
    pub(crate) fn set_mss(&mut self, now: Ns, mss: u32, lost: bool) {
        todo!()
    }

    /// All that is not SACKed is lost, without a reduction of cwnd.
    pub(crate) fn mark_all_lost(&mut self, now: Ns) {
        todo!()
    }

    pub(crate) fn set_congestion(&mut self, congestion: Congestion) {
        todo!()
    }

    pub(crate) fn snd_una(&self) -> Seq {
        todo!()
    }

    pub(crate) fn snd_nxt(&self) -> Seq {
        todo!()
    }

    /// snd_nxt - snd_una.
    pub(crate) fn flight_bytes(&self) -> u32 {
        todo!()
    }

    /// Small segments below MSS that are not acknowledged, for Nagle, are the owner's. This: payload bytes of a full segment.
    pub(crate) fn mss(&self) -> u32 {
        todo!()
    }

    /// In bytes.
    pub(crate) fn cwnd(&self) -> u32 {
        todo!()
    }

    /// Smoothed round-trip time, once there is a sample.
    pub(crate) fn srtt(&self) -> Option<Ns> {
        todo!()
    }

    /// Retransmission time-out with its backoff, also for zero-window probes and keep-alive.
    pub(crate) fn rto(&self) -> Ns {
        todo!()
    }

    /// Time-outs in a row without an ACK of anything new.
    pub(crate) fn retransmits(&self) -> u32 {
        todo!()
    }

    /// When the first retransmission since the last ACK of anything new was sent (for user time-out, RFC 9293, 3.8.3).
    pub(crate) fn retransmitting_since(&self) -> Option<Ns> {
        todo!()
    }

    /// Bytes of the send buffer that make twice what cwnd can use in a round trip (Linux tcp_sndbuf_expand's rule).
    pub(crate) fn wanted_buffer_bytes(&self) -> u32 {
        todo!()
    }

    /// Writes the fields that are the sender's.
    pub(crate) fn info(&self, now: Ns, info: &mut TcpInfo) {
        todo!()
    }
}
