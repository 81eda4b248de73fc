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

#[test]
fn table() {
    for congestion in [Congestion::NewReno, Congestion::Cubic] {
        for (loss, ms) in [(0, 300), (100, 1_000), (1_000, 5_000), (3_000, 5_000)] {
            for lan in [false, true] {
                let mut config = if lan {
                    TcpConfig::lan()
                } else {
                    TcpConfig::default()
                };
                config.congestion = congestion;
                let (mbit, path) = goodput(config, loss, ms);
                let c = path.counters;
                println!(
                    "{congestion:?} lan {lan} loss {loss}/100000: {mbit} Mbit/s; timeouts {} probes {} recoveries {} lost-retrans {} retrans {} undo {} {} {} dsack {} spurious rto {}",
                    c.timeouts,
                    c.loss_probes,
                    c.sack_recovery,
                    c.lost_retransmit,
                    c.tcp_retrans_segs,
                    c.full_undo,
                    c.partial_undo,
                    c.dsack_undo,
                    c.dsack_recv,
                    c.spurious_rtos
                );
            }
        }
    }
}
