//! The congestion window: RFC 5681 with byte counting (RFC 3465), or CUBIC above ssthresh.
use super::cubic::Cubic;
use super::hystart::{CSS_GROWTH_DIVISOR, Growth, HyStart};
use crate::config::Congestion;
use crate::tcp::seq::Seq;
use crate::{Counters, Ns};

/// A limit of slow start's growth by one ACK. RFC 3465 has two segments against bursts, RFC 9406 eight; a receiver with GRO acknowledges a
/// whole frame at once, and our frames are such bursts anyway.
const SLOW_START_LIMIT_BYTES: u32 = 65_536;
/// Less than half the sequence space, whatever the ACKs say.
const CWND_MAX: u32 = 1 << 30;

#[derive(Debug, Clone, Copy)]
enum Algorithm {
    /// Bytes acknowledged since cwnd grew last (RFC 3465, 2.1).
    NewReno {
        counted: u32,
    },
    Cubic(Cubic),
}

/// What [`Window::restore`] brings back: the state before a congestion event that was none.
#[derive(Debug, Clone, Copy)]
pub(super) struct SavedWindow {
    cwnd: u32,
    ssthresh: u32,
    algorithm: Algorithm,
}

/// What an ACK says to the window.
#[derive(Debug, Clone, Copy)]
pub(super) struct Acked {
    pub(super) bytes: u32,
    pub(super) una: Seq,
    pub(super) nxt: Seq,
    pub(super) rtt: Option<Ns>,
    pub(super) srtt: Ns,
}

#[derive(Debug)]
pub(super) struct Window {
    mss: u32,
    cwnd: u32,
    ssthresh: u32,
    initial: u32,
    algorithm: Algorithm,
    /// Only in the first slow start (RFC 9406, 4.3).
    hystart: Option<HyStart>,
}

impl Window {
    pub(super) fn new(
        congestion: Congestion,
        hystart: bool,
        mss: u32,
        initial_segments: u32,
        first: Seq,
    ) -> Window {
        let initial = initial_segments.saturating_mul(mss).clamp(mss, CWND_MAX);
        Window {
            mss,
            cwnd: initial,
            ssthresh: u32::MAX,
            initial,
            algorithm: Algorithm::new(congestion),
            hystart: hystart.then(|| HyStart::new(first)),
        }
    }

    pub(super) fn cwnd(&self) -> u32 {
        self.cwnd
    }

    /// `u32::MAX`: none yet.
    pub(super) fn ssthresh(&self) -> u32 {
        self.ssthresh
    }

    pub(super) fn mss(&self) -> u32 {
        self.mss
    }

    pub(super) fn initial(&self) -> u32 {
        self.initial
    }

    pub(super) fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    pub(super) fn set_cwnd(&mut self, bytes: u32) {
        self.cwnd = bytes.clamp(self.mss, CWND_MAX);
    }

    pub(super) fn set_ssthresh(&mut self, bytes: u32) {
        self.ssthresh = bytes;
    }

    /// Windows keep their number of segments, as in Linux: the path was found good for so many packets.
    pub(super) fn set_mss(&mut self, mss: u32) {
        let old = u64::from(self.mss);
        let scaled = |bytes: u32| (u64::from(bytes) * u64::from(mss)).div_ceil(old);
        let scaled = |bytes| scaled(bytes).min(u64::from(CWND_MAX)) as u32;
        self.initial = scaled(self.initial).max(mss);
        if self.ssthresh != u32::MAX {
            self.ssthresh = scaled(self.ssthresh);
        }
        self.cwnd = scaled(self.cwnd).max(mss);
        self.mss = mss;
    }

    /// SYN or SYN-ACK was lost (RFC 5681, 3.1).
    pub(super) fn begin_with_one_segment(&mut self) {
        self.initial = self.mss;
        self.cwnd = self.mss;
    }

    pub(super) fn set_algorithm(&mut self, congestion: Congestion) {
        self.algorithm = Algorithm::new(congestion);
    }

    /// cwnd was the limit, and these bytes were acknowledged.
    pub(super) fn grow(&mut self, now: Ns, acked: &Acked, counters: &mut Counters) {
        let mut bytes = acked.bytes;
        if self.in_slow_start() {
            let growth = self.slow_start(acked, counters);
            let before = self.cwnd;
            self.cwnd = before.saturating_add(growth).min(self.ssthresh);
            // Beyond ssthresh the rest counts for congestion avoidance.
            if self.in_slow_start() || growth == 0 {
                self.set_cwnd(self.cwnd);
                return;
            }
            bytes = bytes.saturating_sub(self.cwnd - before);
        }
        let grown = self
            .algorithm
            .acked(now, bytes, self.cwnd, self.mss, acked.srtt);
        self.set_cwnd(self.cwnd.saturating_add(grown));
    }

    fn slow_start(&mut self, acked: &Acked, counters: &mut Counters) -> u32 {
        let bytes = acked.bytes.min(SLOW_START_LIMIT_BYTES);
        let Some(hystart) = &mut self.hystart else {
            return bytes;
        };
        match hystart.acked(acked.una, acked.nxt, acked.rtt, counters) {
            Growth::Full => bytes,
            Growth::Conservative => bytes / CSS_GROWTH_DIVISOR,
            Growth::Leave => {
                self.hystart = None;
                self.ssthresh = self.cwnd;
                0
            }
        }
    }

    /// Congestion (RFC 5681, 3.1, equation 4; RFC 9438, 4.6): sets ssthresh and returns the state before.
    pub(super) fn congestion(&mut self) -> SavedWindow {
        let before = SavedWindow {
            cwnd: self.cwnd,
            ssthresh: self.ssthresh,
            algorithm: self.algorithm,
        };
        self.hystart = None;
        let reduced = match &mut self.algorithm {
            Algorithm::NewReno { counted } => {
                *counted = 0;
                self.cwnd / 2
            }
            Algorithm::Cubic(cubic) => cubic.congestion(self.cwnd),
        };
        self.ssthresh = reduced.max(2 * self.mss);
        before
    }

    /// It was none (RFC 4015; RFC 9438, 4.9.1).
    pub(super) fn restore(&mut self, before: &SavedWindow) {
        self.set_cwnd(self.cwnd.max(before.cwnd));
        self.ssthresh = self.ssthresh.max(before.ssthresh);
        self.algorithm = before.algorithm;
    }

    /// cwnd was not the limit for so long.
    pub(super) fn pause(&mut self, idle: Ns) {
        if let Algorithm::Cubic(cubic) = &mut self.algorithm {
            cubic.pause(idle);
        }
    }
}

impl Algorithm {
    fn new(congestion: Congestion) -> Algorithm {
        match congestion {
            Congestion::NewReno => Algorithm::NewReno { counted: 0 },
            Congestion::Cubic => Algorithm::Cubic(Cubic::default()),
        }
    }

    /// What cwnd grows by in congestion avoidance.
    fn acked(&mut self, now: Ns, bytes: u32, cwnd: u32, mss: u32, srtt: Ns) -> u32 {
        match self {
            Algorithm::NewReno { counted } => {
                *counted = counted.saturating_add(bytes);
                if *counted < cwnd {
                    return 0;
                }
                *counted -= cwnd;
                *counted = (*counted).min(cwnd);
                mss
            }
            Algorithm::Cubic(cubic) => cubic.acked(now, bytes, cwnd, mss, srtt),
        }
    }
}

#[cfg(test)]
mod tests;
