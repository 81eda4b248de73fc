//! Which transmissions a later one's arrival makes lost, and how much reordering is waited for (RFC 8985, 6.2).
use super::delivery::Latest;
use crate::Ns;
use crate::tcp::seq::Seq;

/// RFC 8985, 6.2, step 4: recoveries that a widened window lasts.
const REO_WND_PERSIST: u8 = 16;

#[derive(Debug, Default)]
pub(super) struct Rack {
    latest: Option<Latest>,
    /// Of `latest`'s transmission.
    rtt: Ns,
    reo_wnd_mult: u8,
    reo_wnd_persist: u8,
    /// A needless retransmission widened the window; not again before snd_una is here.
    dsack_round: Option<Seq>,
    reordering_seen: bool,
}

/// What the reordering window depends on.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReorderingInput {
    pub(super) in_recovery: bool,
    pub(super) enough_sacked: bool,
    pub(super) srtt: Ns,
    pub(super) min_rtt: Ns,
}

impl Rack {
    /// Step 2. `latest`: of this ACK.
    pub(super) fn update(&mut self, now: Ns, latest: &Latest) {
        self.rtt = now.since(latest.sent_at);
        if self.latest.is_none_or(|old| latest.after(&old)) {
            self.latest = Some(*latest);
        }
    }

    pub(super) fn latest(&self) -> Option<Latest> {
        self.latest
    }

    /// A transmission at `sent_at` before [`Rack::latest`] is lost from then on.
    pub(super) fn lost_at(&self, sent_at: Ns, reo_wnd: Ns) -> Ns {
        sent_at + self.rtt + reo_wnd
    }

    /// Step 3.
    pub(super) fn set_reordering_seen(&mut self) {
        self.reordering_seen = true;
    }

    /// Step 4, RACK_update_reo_wnd: this ACK has a DSACK, or its timestamp says as well that a retransmission was needless.
    pub(super) fn needless(&mut self, una: Seq, nxt: Seq) {
        if self.dsack_round.is_some_and(|end| una.before(end)) {
            return;
        }
        self.dsack_round = Some(nxt);
        self.reo_wnd_mult = self.reo_wnd_mult.saturating_add(1);
        self.reo_wnd_persist = REO_WND_PERSIST;
    }

    /// Step 4: a recovery ended.
    pub(super) fn recovered(&mut self) {
        self.reo_wnd_persist = self.reo_wnd_persist.saturating_sub(1);
        if self.reo_wnd_persist == 0 {
            self.reo_wnd_mult = 0;
        }
    }

    /// Step 4.
    pub(super) fn reo_wnd(&self, input: ReorderingInput) -> Ns {
        if !self.reordering_seen && (input.in_recovery || input.enough_sacked) {
            return Ns(0);
        }
        let quarters = u64::from(self.reo_wnd_mult) + 1;
        Ns((input.min_rtt.0 / 4).saturating_mul(quarters)).min(input.srtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALM: ReorderingInput = ReorderingInput {
        in_recovery: false,
        enough_sacked: false,
        srtt: Ns(10_000),
        min_rtt: Ns(4_000),
    };

    #[test]
    fn rfc8985_6_2_step_4_no_window_when_loss_is_certain() {
        let mut rack = Rack::default();
        assert_eq!(rack.reo_wnd(CALM), Ns(1_000));
        let enough = ReorderingInput {
            enough_sacked: true,
            ..CALM
        };
        assert_eq!(rack.reo_wnd(enough), Ns(0));
        rack.set_reordering_seen();
        assert_eq!(rack.reo_wnd(enough), Ns(1_000));
    }

    #[test]
    fn rfc8985_6_2_step_4_dsack_widens_once_a_round_and_sixteen_recoveries_end_it() {
        let mut rack = Rack::default();
        rack.needless(Seq(0), Seq(100));
        rack.needless(Seq(50), Seq(150));
        assert_eq!(rack.reo_wnd(CALM), Ns(2_000));
        rack.needless(Seq(100), Seq(200));
        assert_eq!(rack.reo_wnd(CALM), Ns(3_000));
        for _ in 0..16 {
            assert_eq!(rack.reo_wnd(CALM), Ns(3_000));
            rack.recovered();
        }
        assert_eq!(rack.reo_wnd(CALM), Ns(1_000));
    }

    #[test]
    fn rfc8985_6_2_step_4_bounded_by_srtt() {
        let mut rack = Rack::default();
        for round in 0..40 {
            rack.needless(Seq(round * 100), Seq(round * 100 + 100));
        }
        assert_eq!(rack.reo_wnd(CALM), Ns(10_000));
    }
}
