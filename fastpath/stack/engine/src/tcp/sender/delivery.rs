//! What one ACK says that none before said.
use super::entry::{Entry, Order};
use crate::Ns;
use crate::tcp::seq::Seq;

/// Of never retransmitted bytes: when the first and the last that the ACK covers were sent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SentSpan {
    pub(super) first: Option<Ns>,
    pub(super) last: Option<Ns>,
}

impl SentSpan {
    fn add(&mut self, at: Ns) {
        self.first = Some(self.first.map_or(at, |first| Ns(first.0.min(at.0))));
        self.last = Some(self.last.map_or(at, |last| Ns(last.0.max(at.0))));
    }
}

/// The transmission that was made last among those known to have arrived (RFC 8985, 5.2, RACK.segment).
#[derive(Debug, Clone, Copy)]
pub(super) struct Latest {
    pub(super) order: Order,
    pub(super) sent_at: Ns,
    pub(super) end: Seq,
}

impl Latest {
    /// RFC 8985, 6.2, RACK_sent_after.
    pub(super) fn after(&self, other: &Latest) -> bool {
        self.order.after(other.order) || self.order == other.order && self.end.after(other.end)
    }
}

#[derive(Debug)]
pub(super) struct Delivery {
    now: Ns,
    /// Echoed timestamp and the tick of its clock.
    ts_echo: Option<Ns>,
    tick: Ns,
    min_rtt: Option<Ns>,
    /// What snd_una advanced by.
    pub(super) acked_bytes: u32,
    /// Newly known to have arrived: by snd_una or SACK, not before.
    pub(super) delivered_bytes: u32,
    pub(super) delivered_segments: u32,
    /// Of them by SACK.
    pub(super) sacked_bytes: u32,
    pub(super) acked: SentSpan,
    pub(super) sacked: SentSpan,
    /// snd_una passed retransmitted bytes that were not SACKed before: whose round trip it was is ambiguous (Karn).
    pub(super) acked_retransmission: bool,
    /// The lowest end of never retransmitted bytes that are delivered now.
    pub(super) lowest_original_end: Option<Seq>,
    pub(super) latest: Option<Latest>,
    /// The same of never retransmitted bytes only.
    pub(super) latest_original: Option<Latest>,
    /// Bytes by which a never retransmitted segment came late (RFC 8985, 6.2, step 3).
    pub(super) reordered_bytes: Option<u32>,
}

impl Delivery {
    pub(super) fn new(now: Ns, ts_echo: Option<Ns>, tick: Ns, min_rtt: Option<Ns>) -> Delivery {
        Delivery {
            now,
            ts_echo,
            tick,
            min_rtt,
            acked_bytes: 0,
            delivered_bytes: 0,
            delivered_segments: 0,
            sacked_bytes: 0,
            acked: SentSpan::default(),
            sacked: SentSpan::default(),
            acked_retransmission: false,
            lowest_original_end: None,
            latest: None,
            latest_original: None,
            reordered_bytes: None,
        }
    }

    /// `part` was not SACKed before. `fack`: the highest end delivered so far.
    pub(super) fn add(&mut self, part: &Entry, fack: Seq, by_sack: bool) {
        self.delivered_bytes += part.bytes;
        self.delivered_segments += u32::from(part.segments);
        if by_sack {
            self.sacked_bytes += part.bytes;
        }
        if part.retransmitted {
            self.acked_retransmission |= !by_sack;
        } else {
            self.add_original(part, fack, by_sack);
        }
        if self.is_of_this_transmission(part, by_sack) {
            let new = Latest {
                order: part.order,
                sent_at: part.sent_at,
                end: part.end(),
            };
            let later = |old: Option<Latest>| match old {
                Some(old) if !new.after(&old) => Some(old),
                _ => Some(new),
            };
            self.latest = later(self.latest);
            if !part.retransmitted {
                self.latest_original = later(self.latest_original);
            }
        }
    }

    fn add_original(&mut self, part: &Entry, fack: Seq, by_sack: bool) {
        let span = if by_sack {
            &mut self.sacked
        } else {
            &mut self.acked
        };
        span.add(part.sent_at);
        let end = part.end();
        let lowest = self.lowest_original_end.unwrap_or(end);
        self.lowest_original_end = Some(lowest.earlier(end));
        if end.before(fack) {
            let late = fack - part.start;
            self.reordered_bytes = self.reordered_bytes.max(Some(late));
        }
    }

    /// RFC 8985, 6.2, step 2: a retransmitted segment's ACK may be of an earlier transmission. The echo is of what moved the left edge
    /// (RFC 7323, 4.3), so it says nothing of SACKed segments.
    fn is_of_this_transmission(&self, part: &Entry, by_sack: bool) -> bool {
        if !part.retransmitted {
            return true;
        }
        let sent_tick = floor(part.sent_at, self.tick);
        let echoes_earlier = !by_sack && self.ts_echo.is_some_and(|echo| echo < sent_tick);
        let too_fast = self
            .min_rtt
            .is_some_and(|least| self.now.since(part.sent_at) < least);
        !echoes_earlier && !too_fast
    }
}

/// `at` as a clock of this tick stamps it.
pub(super) fn floor(at: Ns, tick: Ns) -> Ns {
    Ns(at.0 - at.0 % tick.0.max(1))
}
