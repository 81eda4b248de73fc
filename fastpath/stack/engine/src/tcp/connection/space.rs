//! How much to let the peer send: the advertised window (RFC 9293, 3.8.6.2.2), and what the buffer grows to (Linux' dynamic
//! right-sizing: tcp_rcv_space_adjust, tcp_grow_window).
use crate::tcp::seq::Seq;
use crate::{Ns, TcpConfig};

/// A window is at most so much (RFC 7323, 2.3); without the option 65,535.
const MAX_SCALE: u8 = 14;

#[derive(Debug, Clone, Copy)]
pub(crate) struct ReceiveSpace {
    /// Of the buffer (SO_RCVBUF): half of it is window, as Linux has it before it knows better.
    pub(crate) limit: u32,
    /// Set by the owner: it stays.
    pub(crate) fixed: bool,
    pub(crate) clamp: u32,
    /// What may be advertised now, below the clamp: grows with what comes (rcv_ssthresh).
    pub(crate) ssthresh: u32,
    /// The MSS that we announced, less options.
    pub(crate) advmss: u32,
    /// The receiver's estimate of the round-trip time: 8 × ns; 0 before the first.
    rtt_8: u64,
    rtt_seq: Seq,
    rtt_at: Ns,
    last_echo: u32,
    /// Bytes that the application read in the last round trip, and since when.
    pub(crate) copied: u32,
    copied_seq: Seq,
    copied_at: Ns,
}

/// The window scale that `limit`, the largest buffer, needs (Linux tcp_select_initial_window).
pub(crate) fn window_scale(largest: u32) -> u8 {
    (largest.max(1).ilog2() as u8)
        .saturating_sub(15)
        .min(MAX_SCALE)
}

/// The window of a SYN or SYN-ACK: never scaled, a multiple of MSS.
pub(crate) fn initial_window(limit: u32, clamp: u32, mss: u32) -> u32 {
    let mut space = limit / 2;
    if clamp > 0 {
        space = space.min(clamp);
    }
    if mss > 0 && space > mss {
        space -= space % mss;
    }
    space.min(65_535)
}

impl ReceiveSpace {
    /// `window`: what SYN or SYN-ACK advertised. `clamp`: TCP_WINDOW_CLAMP, 0 for none.
    pub(crate) fn new(
        now: Ns,
        limit: u32,
        fixed: bool,
        clamp: u32,
        window: u32,
        advmss: u32,
        next: Seq,
    ) -> ReceiveSpace {
        let clamp = if clamp > 0 { clamp } else { limit / 2 };
        ReceiveSpace {
            limit,
            fixed,
            clamp: clamp.max(window),
            ssthresh: window,
            advmss,
            rtt_8: 0,
            rtt_seq: next,
            rtt_at: Ns(0),
            last_echo: 0,
            copied: window.min(10 * advmss).max(1),
            copied_seq: next,
            copied_at: now,
        }
    }

    fn full(&self) -> u32 {
        self.limit / 2
    }

    pub(crate) fn free(&self, unread: u32) -> u32 {
        self.full().saturating_sub(unread)
    }

    /// Linux __tcp_select_window: 0 rather than a silly one.
    pub(crate) fn window(
        &mut self,
        unread: u32,
        window: u32,
        rcv_mss: u32,
        scale: u8,
        pressure: bool,
    ) -> u32 {
        let allowed = self.full();
        let full = allowed.min(self.clamp);
        let mss = rcv_mss.min(full);
        let mut free = self.free(unread);
        if mss == 0 {
            return 0;
        }
        if free < full / 2 {
            if pressure {
                self.ssthresh = self.ssthresh.min(4 * self.advmss);
            }
            free = free >> scale << scale;
            if free < allowed / 16 || free < mss {
                return 0;
            }
        }
        free = free.min(self.ssthresh);
        if scale > 0 {
            return free.div_ceil(1 << scale) << scale;
        }
        if window <= free.saturating_sub(mss) || window > free {
            return free - free % mss;
        }
        if mss == full && free > window + full / 2 {
            return free;
        }
        window
    }

    /// Data came: the window may open by twice as much (slow start of the other side, as Linux tcp_grow_window).
    pub(crate) fn grow_window(&mut self, bytes: u32, unread: u32) -> bool {
        let room = self
            .clamp
            .min(self.free(unread))
            .saturating_sub(self.ssthresh);
        let step = bytes.max(self.advmss).saturating_mul(2);
        self.ssthresh += room.min(step);
        room > 0
    }

    /// Without timestamps: a window's worth of data takes at least a round trip.
    pub(crate) fn measure_rtt(&mut self, now: Ns, next: Seq, window: u32) {
        if next.before(self.rtt_seq) {
            return;
        }
        if self.rtt_at.0 != 0 {
            self.add_rtt(now.since(self.rtt_at), true);
        }
        self.rtt_seq = next + window;
        self.rtt_at = now;
    }

    /// With them: each new echo, on a full segment.
    pub(crate) fn measure_rtt_by_echo(&mut self, now: Ns, echo: u32, made: Ns) {
        if echo != self.last_echo {
            self.last_echo = echo;
            self.add_rtt(now.since(made).max(Ns::from_ms(1)), false);
        }
    }

    fn add_rtt(&mut self, sample: Ns, by_window: bool) {
        let sample = sample.0.max(1);
        self.rtt_8 = match self.rtt_8 {
            0 => sample << 3,
            old if by_window => old.min(sample << 3),
            old => old - (old >> 3) + sample,
        };
    }

    pub(crate) fn rtt(&self) -> Ns {
        Ns(self.rtt_8 >> 3)
    }

    /// The application read until `read`: once a round trip, the buffer becomes what two of them bring, and more where that grows.
    pub(crate) fn adjust(&mut self, now: Ns, read: Seq, config: &TcpConfig) {
        if self.rtt_8 == 0 || now.since(self.copied_at).0 < self.rtt_8 >> 3 {
            return;
        }
        let copied = read - self.copied_seq;
        if copied > self.copied {
            if !self.fixed {
                self.enlarge(copied, config);
            }
            self.copied = copied;
        }
        self.copied_seq = read;
        self.copied_at = now;
    }

    fn enlarge(&mut self, copied: u32, config: &TcpConfig) {
        let window = 2 * u64::from(copied) + 16 * u64::from(self.advmss);
        let growth = window * u64::from(copied - self.copied) / u64::from(self.copied.max(1));
        let limit = (2 * (window + 2 * growth)).min(u64::from(config.receive_buffer.max)) as u32;
        if limit > self.limit {
            self.limit = limit;
            self.clamp = limit / 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space() -> ReceiveSpace {
        ReceiveSpace::new(Ns(1), 131_072, false, 0, 64_240, 1_460, Seq(0))
    }

    #[test]
    fn rfc7323_2_2_scales_are_what_the_largest_buffer_needs() {
        assert_eq!(window_scale(6 << 20), 7);
        assert_eq!((window_scale(0), window_scale(65_535)), (0, 0));
        assert_eq!(window_scale(u32::MAX), MAX_SCALE);
        assert_eq!(initial_window(131_072, 0, 1_460), 64_240);
    }

    /// RFC 9293, 3.8.6.2.2: none rather than a silly one.
    #[test]
    fn rfc9293_3_8_6_2_2_the_window_closes_in_one_step() {
        let mut space = space();
        for unread in (0..70_000).step_by(100) {
            let window = space.window(unread, 64_240, 1_460, 7, false);
            assert!(window == 0 || window >= 1_460, "{window} at {unread}");
        }
    }

    /// As much as the application reads in a round trip doubles the buffer; a slow reader's stays.
    #[test]
    fn the_buffer_grows_with_what_is_read_in_a_round_trip() {
        let config = TcpConfig::default();
        let (mut fast, mut slow) = (space(), space());
        let mut read = Seq(0);
        for ms in 1..50 {
            let now = Ns::from_ms(10 * ms);
            for space in [&mut fast, &mut slow] {
                space.measure_rtt_by_echo(now, ms as u32, Ns::from_ms(10 * ms - 9));
            }
            let step = fast.limit / 2;
            read += step;
            fast.adjust(now, read, &config);
            slow.adjust(now, Seq(100 * ms as u32), &config);
        }
        assert_eq!(fast.limit, config.receive_buffer.max);
        assert_eq!(slow.limit, 131_072);
    }

    #[test]
    fn so_rcvbuf_turns_growth_off() {
        let mut space = space();
        space.fixed = true;
        space.measure_rtt_by_echo(Ns::from_ms(10), 1, Ns::from_ms(1));
        space.adjust(Ns::from_ms(30), Seq(1_000_000), &TcpConfig::default());
        assert_eq!(space.limit, 131_072);
    }
}
