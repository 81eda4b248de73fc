//! Bytes in one direction, by iperf3: what the program on the stack sends.
use super::Bench;
use super::rounds::Turn;
use super::servers::iperf3;
use super::ways::{Place, Way};
use crate::error::Result;
use crate::program::run_as;
use crate::said::number;
use crate::stack::network::{Cables, client_in};
use std::process::Command;

/// Until it is taken for a refusal of another kind.
const TRIES: u32 = 10;

pub(super) fn measure(bench: &mut Bench<'_, '_>) -> Result<()> {
    let cables = &Cables::lay()?;
    let host = cables.tap()?;
    let seconds = bench.seconds.to_string();
    let ways = &[Way::Kernel, Way::Inline, Way::Pipeline, Way::PipelineTap];
    bench.in_turn("bulk_out", ways, |bench, way| {
        let place = match way {
            Way::PipelineTap => Place {
                namespace: host,
                port: "tap:t0",
                kernel: "10.0.2.1",
                stack: "10.0.2.3",
                words: &[],
            },
            _ => Place::of(cables),
        };
        let serving = way.start(bench.settings, place, &iperf3(bench))?;
        Turn::with_processors(&serving, || {
            let mut command = client_in(host, "iperf3");
            command.args(["-c", place.host(way), "-p", serving.port]);
            command.args(["-R", "-J", "-t", &seconds]);
            let text = received(&mut command)?;
            let said = serde_json::from_str(&text).unwrap_or_default();
            let of = |at| number("iperf3", &said, at);
            let bits_per_s = of("/end/sum_received/bits_per_second")?;
            Ok((Turn::of(bits_per_s), of("/end/sum_received/bytes")? / 1e3))
        })
    })
}

/// Its server has its file before it listens, and a client that is refused says so in its JSON.
fn received(command: &mut Command) -> Result<String> {
    for _ in 0..TRIES {
        if let Ok(text) = run_as("iperf3", command) {
            return Ok(text);
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    run_as("iperf3", command)
}
