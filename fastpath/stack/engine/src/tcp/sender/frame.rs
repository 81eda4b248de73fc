//! How many segments a frame for the device to cut has: few on slow paths, where the frame is a burst on the wire and a loss takes all of it.
use super::state::Sender;

/// What goes out in about a millisecond makes one frame (Linux tcp_tso_autosize: sk_pacing_shift).
const SPAN_NS: u64 = 1_000_000_000 >> 10;
/// And on short paths more: halved with each of these µs of the least round trip (Linux tcp_tso_rtt_log).
const SHORT_PATH_SHIFT: u32 = 9;
const LARGEST_BYTES: u64 = 65_536;

impl Sender {
    /// Of a retransmission.
    pub(crate) fn segments_by_rate(&self, least: u32) -> u32 {
        self.segments_in_a_span().max(least).max(1)
    }

    /// Of new data: at least two frames to a window, whose ACKs would else come in one burst, too (Linux tcp_cwnd_test).
    pub(crate) fn segments_by_window(&self, least: u32) -> u32 {
        let half = self.cwnd() / self.mss() / 2;
        self.segments_by_rate(least).min(half.max(1))
    }

    fn segments_in_a_span(&self) -> u32 {
        let Some(srtt) = self.srtt().filter(|srtt| srtt.0 > 0) else {
            return u32::MAX;
        };
        // Faster than the window, so that nothing is held back: twice in slow start (Linux tcp_pacing_ss_ratio, tcp_pacing_ca_ratio).
        let percent = if self.cwnd() < self.window.ssthresh() / 2 {
            200
        } else {
            120
        };
        let in_span = u64::from(self.cwnd()) * percent / 100 * SPAN_NS / srtt.0;
        let halvings = (self.min_rtt.get().unwrap_or(srtt).0 / 1_000) >> SHORT_PATH_SHIFT;
        let short_path = LARGEST_BYTES >> halvings.min(63);
        let segments = (in_span + short_path) / u64::from(self.mss());
        segments.min(u64::from(u32::MAX)) as u32
    }

    /// cwnd has no room for a segment.
    pub(crate) fn is_cwnd_full(&self) -> bool {
        self.in_flight_bytes() + self.mss() > self.cwnd()
    }
}
