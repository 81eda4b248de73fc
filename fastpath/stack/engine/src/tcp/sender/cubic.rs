//! CUBIC's congestion avoidance (RFC 9438) in bytes and integers.
use crate::Ns;

/// Multiplicative decrease factor (4.6): 0.7.
const BETA: (u64, u64) = (7, 10);
/// α of the Reno-friendly region (4.3): 3·(1 - β)/(1 + β) = 9/17.
const ALPHA: (u64, u64) = (9, 17);
/// W_est is kept in so many parts of a byte.
const PARTS: u64 = 256;
/// Times beyond this from the plateau make no difference, and keep the cube in bounds.
const FAR_US: i128 = 1_000_000_000;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cubic {
    /// W_max, in bytes.
    w_max: u32,
    /// cwnd at the last congestion event, in bytes.
    cwnd_prior: u32,
    /// Start of this stage of congestion avoidance.
    epoch: Option<Ns>,
    /// Plateau of the curve: time since the epoch, and bytes.
    k_us: u64,
    plateau: u32,
    /// W_est, in bytes · PARTS.
    w_est: u64,
    /// Bytes · cwnd that did not make a byte of growth yet.
    credit: u64,
}

impl Cubic {
    /// A congestion event (4.6, 4.7): the new ssthresh. `cwnd` in bytes.
    pub(super) fn congestion(&mut self, cwnd: u32) -> u32 {
        let reduced = scale(cwnd, BETA.0, BETA.1);
        // Fast convergence: the plateau is lower than last time, another flow needs room.
        self.w_max = if cwnd < self.w_max {
            scale(cwnd, BETA.0 + BETA.1, 2 * BETA.1)
        } else {
            cwnd
        };
        self.cwnd_prior = cwnd;
        self.epoch = None;
        reduced
    }

    /// Time in which cwnd was not the limit does not count (5.8).
    pub(super) fn pause(&mut self, idle: Ns) {
        self.epoch = self.epoch.map(|epoch| epoch + idle);
    }

    /// `acked` bytes were acknowledged in congestion avoidance: what cwnd grows by (4.2 to 4.5).
    pub(super) fn acked(&mut self, now: Ns, acked: u32, cwnd: u32, mss: u32, rtt: Ns) -> u32 {
        let epoch = match self.epoch {
            Some(epoch) => epoch,
            None => self.begin(now, cwnd, mss),
        };
        self.grow_estimate(acked, cwnd, mss);
        let elapsed = now.since(epoch);
        let estimate = (self.w_est / PARTS).min(u64::from(u32::MAX)) as u32;
        if self.at(elapsed, mss) < u64::from(estimate) {
            // Reno-friendly region.
            return estimate.saturating_sub(cwnd);
        }
        let most = u64::from(cwnd) * 3 / 2;
        let target = self.at(elapsed + rtt, mss).clamp(u64::from(cwnd), most);
        self.credit += (target - u64::from(cwnd)) * u64::from(acked);
        let grown = self.credit / u64::from(cwnd);
        self.credit %= u64::from(cwnd);
        grown.min(u64::from(acked)) as u32
    }

    /// A stage of congestion avoidance begins.
    fn begin(&mut self, now: Ns, cwnd: u32, mss: u32) -> Ns {
        self.plateau = self.w_max.max(cwnd);
        let missing = u128::from(self.plateau - cwnd);
        // K = cube root of missing segments / C, with C = 0.4; in µs.
        self.k_us = cube_root(missing * 10 * 10_u128.pow(18) / (4 * u128::from(mss)));
        self.w_est = u64::from(cwnd) * PARTS;
        self.credit = 0;
        *self.epoch.insert(now)
    }

    /// W_cubic(t), in bytes.
    fn at(&self, t: Ns, mss: u32) -> u64 {
        let from_plateau = i128::from(t.0 / 1_000) - i128::from(self.k_us);
        let d = from_plateau.clamp(-FAR_US, FAR_US);
        let bytes =
            i128::from(self.plateau) + d * d * d / 10 * 4 * i128::from(mss) / 10_i128.pow(18);
        bytes.clamp(0, i128::from(u32::MAX)) as u64
    }

    /// 4.3: α until cwnd is what it was, then 1.
    fn grow_estimate(&mut self, acked: u32, cwnd: u32, mss: u32) {
        let grown = u64::from(acked) * u64::from(mss) * PARTS / u64::from(cwnd.max(1));
        self.w_est += if self.w_est < u64::from(self.cwnd_prior) * PARTS {
            grown * ALPHA.0 / ALPHA.1
        } else {
            grown
        };
    }
}

fn scale(bytes: u32, by: u64, of: u64) -> u32 {
    (u64::from(bytes) * by / of) as u32
}

/// Rounded down; at most 2³⁶.
fn cube_root(of: u128) -> u64 {
    let mut root = 0_u64;
    for bit in (0..=36).rev() {
        let more = root | 1 << bit;
        if u128::from(more).pow(3) <= of {
            root = more;
        }
    }
    root
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;

    #[test]
    fn cube_roots() {
        assert_eq!([0, 1, 7, 8, 26, 27].map(cube_root), [0, 1, 1, 2, 2, 3]);
        assert_eq!(cube_root(10_u128.pow(24)), 100_000_000);
    }

    /// ACKs of all in flight each `rtt`, until `end`: cwnd afterwards.
    fn run(cubic: &mut Cubic, mut cwnd: u32, rtt: Ns, end: Ns) -> u32 {
        let mut now = Ns::from_ms(1);
        while now < end {
            for _ in 0..cwnd / MSS {
                cwnd += cubic.acked(now, MSS, cwnd, MSS, rtt);
            }
            now = now + rtt;
        }
        cwnd
    }

    #[test]
    fn rfc9438_4_2_back_at_w_max_after_k() {
        let mut cubic = Cubic::default();
        // 4,000 segments: K = cbrt(4000 · 0.3 / 0.4) = 14.4 s.
        let cwnd = cubic.congestion(4_000 * MSS);
        assert_eq!(cwnd, 2_800 * MSS);
        let after = run(&mut cubic, cwnd, Ns::from_ms(100), Ns::from_ms(14_400));
        assert!(after.abs_diff(4_000 * MSS) < 20 * MSS, "{after}");
    }

    #[test]
    fn rfc9438_4_3_reno_friendly_grows_9_17ths_then_whole_segments() {
        let mut cubic = Cubic::default();
        let cwnd = cubic.congestion(20 * MSS);
        assert_eq!(cwnd, 14 * MSS);
        // 6 segments at 9/17 each round trip: 11.3 round trips.
        let back = run(&mut cubic, cwnd, Ns::from_ms(1), Ns::from_ms(12));
        assert!(back.abs_diff(20 * MSS) < MSS, "{back}");
        let more = run(&mut cubic, back, Ns::from_ms(1), Ns::from_ms(11));
        assert!(more.abs_diff(30 * MSS) < 2 * MSS, "{more}");
    }

    #[test]
    fn rfc9438_4_7_fast_convergence() {
        let mut cubic = Cubic::default();
        cubic.congestion(100 * MSS);
        assert_eq!(cubic.w_max, 100 * MSS);
        cubic.congestion(80 * MSS);
        assert_eq!(cubic.w_max, 68 * MSS);
    }

    #[test]
    fn rfc9438_5_8_idle_time_does_not_count() {
        let mut paused = Cubic::default();
        let cwnd = paused.congestion(4_000 * MSS);
        run(&mut paused, cwnd, Ns::from_ms(100), Ns::from_ms(1_000));
        paused.pause(Ns::from_ms(60_000));
        let after = paused.at(Ns::from_ms(61_000).since(paused.epoch.unwrap()), MSS);
        assert!(after < 4_000 * u64::from(MSS), "{after}");
    }
}
