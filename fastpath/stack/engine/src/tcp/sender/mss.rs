//! Changes of the segment size.
use super::state::Sender;
use crate::Ns;

impl Sender {
    /// The path's MTU or the options changed. Segments that are larger are lost when `lost` (they were dropped for their size): they are
    /// retransmitted without a reduction of cwnd (RFC 1191, 6.4; Linux tcp_simple_retransmit).
    pub(crate) fn set_mss(&mut self, now: Ns, mss: u32, lost: bool) {
        let mss = mss.max(1);
        self.window.set_mss(mss);
        if lost && !self.board.is_empty() {
            self.lose_larger_than(mss);
            self.arm_rto(now);
        }
    }
}
