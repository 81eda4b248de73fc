//! Goodput under loss: snapshot of what a change of the algorithms does.
use super::path::{Fate, Options, Path, Transmitted};
use crate::Ns;
use crate::config::{Congestion, TcpConfig};

/// A seeded generator (xorshift64*), so that losses are the same on each machine.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub(super) fn one_in(&mut self, n: u64, of: u64) -> bool {
        (self.next() >> 33) % of < n
    }
}

fn random_loss(seed: u64, per_100_000: u64) -> impl FnMut(Transmitted) -> Fate {
    let mut random = Random(seed);
    move |_| {
        if random.one_in(per_100_000, 100_000) {
            Fate::Lost
        } else {
            Fate::Arrives
        }
    }
}

/// Mbit/s over so many ms, and the path afterwards.
fn goodput(config: TcpConfig, per_100_000: u64, ms: u64) -> (u64, Path) {
    let options = Options {
        config,
        bits_per_s: 2_000_000_000,
        ..Options::default()
    };
    let mut path = Path::new(options, random_loss(7, per_100_000));
    path.checked = false;
    path.write(u64::from(u32::MAX) * 8);
    path.run_for(Ns::from_ms(ms));
    let mbit = path.sender.totals.bytes_acked * 8 / ms / 1_000;
    (mbit, path)
}

/// (losses in 100,000, virtual ms, least Mbit/s, most time-outs). Reno's and CUBIC's own response is √(1.5 / p) segments a round trip
/// (RFC 9438, 5.2): 98 Mbit/s at 1 %, 57 at 3 %. What recovery loses must not show.
const CUBIC: [(u64, u64, u64, u64); 4] = [
    (0, 300, 1_800, 0),
    (100, 1_000, 300, 0),
    (1_000, 5_000, 95, 0),
    (3_000, 5_000, 50, 1),
];

#[test]
fn rfc9438_5_2_goodput_is_that_of_the_response_function() {
    for (loss, ms, least, timeouts) in CUBIC {
        let (mbit, path) = goodput(TcpConfig::default(), loss, ms);
        assert!(mbit >= least, "{loss} of 100,000: {mbit} Mbit/s");
        assert!(
            path.counters.timeouts <= timeouts,
            "{loss}: {:?}",
            path.counters
        );
        // Hardly anything is sent twice for nothing.
        let needless = path.counters.dsack_recv;
        assert!(
            needless * 100 <= path.counters.tcp_retrans_segs,
            "{needless}"
        );
    }
}

#[test]
fn rfc5681_new_reno_survives_loss_too() {
    let mut config = TcpConfig::lan();
    config.congestion = Congestion::NewReno;
    let (mbit, _) = goodput(config, 1_000, 5_000);
    assert!(mbit >= 80, "{mbit} Mbit/s");
}

#[test]
fn rfc8985_6_2_a_path_that_reorders_most_loses_nothing() {
    let mut random = Random(3);
    let options = Options {
        bits_per_s: 1_000_000_000,
        queue_bytes: 250_000,
        ..Options::default()
    };
    // A fifth of the segments overtakes half a millisecond of others.
    let mut path = Path::new(options, move |_| {
        if random.one_in(20, 100) {
            Fate::Arrives
        } else {
            Fate::Late(Ns::from_us(500))
        }
    });
    path.checked = false;
    path.write(u64::from(u32::MAX));
    path.run_for(Ns::from_ms(400));
    let mbit = path.sender.totals.bytes_acked * 8 / 400_000;
    assert!(mbit > 850, "{mbit} Mbit/s");
}
