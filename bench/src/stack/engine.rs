//! The engine alone: memory of idle connections, time of a segment among many connections, instructions of a request.
use super::Bench;
use super::network::last_line_of;
use crate::error::{Error, Result};
use crate::program::run;
use crate::said::number;
use serde_json::Value;
use std::process::Command;

const FEW: &str = "10";
const MANY: &str = "100000";

pub(super) fn measure(bench: &mut Bench<'_, '_>) -> Result<()> {
    // Below these, the caches are still being filled.
    let requests = bench.settings.pick("2000", "200000", "1000000");
    let many = bench.settings.pick("2000", MANY, MANY);
    let of = |connections: &'static str, active: &'static str| {
        move |bench: &Bench<'_, '_>| {
            let line = pair(bench, connections, active, requests)?;
            number("hopscope stack pair", &line, "/ns_per_segment")
        }
    };
    bench.compare("segment_ns_100k_over_10", of(FEW, FEW), of(many, many))?;
    bench.compare("segment_ns_100k_idle_over_10", of(FEW, FEW), of(many, FEW))?;
    let idle = pair(bench, many, many, "1000")
        .and_then(|line| number("hopscope stack pair", &line, "/bytes_per_idle_connection"));
    bench.single("bytes_per_idle_connection", idle)?;
    let instructions = instructions(bench);
    bench.single("instructions_per_request", instructions)
}

fn pair(bench: &Bench<'_, '_>, connections: &str, active: &str, requests: &str) -> Result<Value> {
    let mut command = Command::new("timeout");
    command.args(["--signal=KILL", "120", "chrt", "--fifo", "10"]);
    command.arg(&bench.settings.hopscope);
    command.args(["stack", "pair", "--json", "-n", connections]);
    command.args(["--active", active, "-c", requests]);
    last_line_of("hopscope stack pair", &mut command)
}

/// Of both ends: what more requests cost than fewer.
fn instructions(bench: &Bench<'_, '_>) -> Result<f64> {
    const FEWER: f64 = 1_000.0;
    const MORE: f64 = 3_000.0;
    let count = |requests: f64| {
        let dir = bench.settings.build_dir.join("stack");
        let out = dir.join("callgrind.out");
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--quiet"]);
        command.arg(format!("--callgrind-out-file={}", out.display()));
        command.arg(&bench.settings.hopscope);
        command.args(["stack", "pair", "--json", "-n", FEW, "-c"]);
        run(command.arg(requests.to_string()))?;
        let text = std::fs::read_to_string(&out).map_err(Error::file("read", &out))?;
        let _ = std::fs::remove_file(&out);
        let mut lines = text
            .lines()
            .filter_map(|line| line.strip_prefix("summary: "));
        let count = lines
            .next()
            .and_then(|count| count.trim().parse::<f64>().ok());
        count.ok_or(Error::Nothing {
            what: "callgrind's summary",
        })
    };
    Ok((count(MORE)? - count(FEWER)?) / (MORE - FEWER))
}
