//! A receiver: cumulative ACK, SACK (RFC 2018), DSACK (RFC 2883), delayed ACK (RFC 5681, 4.2), timestamps (RFC 7323).
use crate::Ns;
use crate::tcp::seq::{Seq, SeqRange};

#[derive(Debug, Clone)]
pub(super) struct AckSegment {
    pub(super) ack: Seq,
    pub(super) sack: Vec<SeqRange>,
    pub(super) ts_echo: Option<Ns>,
}

#[derive(Debug)]
pub(super) struct Receiver {
    pub(super) rcv_nxt: Seq,
    /// Out of order, the most recently changed first.
    blocks: Vec<SeqRange>,
    sack: bool,
    timestamps: bool,
    ts_recent: Ns,
    delay: Ns,
    unacked: u32,
    pub(super) ack_at: Option<Ns>,
    mss: u32,
}

impl Receiver {
    pub(super) fn new(first: Seq, sack: bool, timestamps: bool, delay: Ns, mss: u32) -> Receiver {
        Receiver {
            rcv_nxt: first,
            blocks: Vec::new(),
            sack,
            timestamps,
            ts_recent: Ns(0),
            delay,
            unacked: 0,
            ack_at: None,
            mss,
        }
    }

    pub(super) fn receive(&mut self, now: Ns, range: SeqRange, stamp: Ns) -> Option<AckSegment> {
        if range.start.until(self.rcv_nxt) {
            self.ts_recent = self.ts_recent.max(Ns(stamp.0 / 1_000_000 * 1_000_000));
        }
        if range.end.until(self.rcv_nxt) || self.blocks.iter().any(|b| b.covers(range)) {
            return Some(self.ack(Some(range)));
        }
        if range.start.after(self.rcv_nxt) {
            self.keep(range);
            return Some(self.ack(None));
        }
        let filled = !self.blocks.is_empty();
        self.unacked += range.end - self.rcv_nxt;
        self.rcv_nxt = range.end;
        while let Some(at) = self.blocks.iter().position(|b| b.start.until(self.rcv_nxt)) {
            self.rcv_nxt = self.rcv_nxt.later(self.blocks.remove(at).end);
        }
        if filled || self.unacked >= 2 * self.mss {
            return Some(self.ack(None));
        }
        self.ack_at.get_or_insert(now + self.delay);
        None
    }

    pub(super) fn delayed(&mut self, now: Ns) -> Option<AckSegment> {
        self.ack_at
            .is_some_and(|at| at <= now)
            .then(|| self.ack(None))
    }

    fn keep(&mut self, mut range: SeqRange) {
        self.blocks.retain(|b| {
            let touches = b.start.until(range.end) && range.start.until(b.end);
            if touches {
                range.start = range.start.earlier(b.start);
                range.end = range.end.later(b.end);
            }
            !touches
        });
        self.blocks.insert(0, range);
    }

    fn ack(&mut self, twice: Option<SeqRange>) -> AckSegment {
        self.unacked = 0;
        self.ack_at = None;
        let blocks = twice.iter().chain(&self.blocks).copied().take(3).collect();
        AckSegment {
            ack: self.rcv_nxt,
            sack: if self.sack { blocks } else { Vec::new() },
            ts_echo: self.timestamps.then_some(self.ts_recent),
        }
    }
}
