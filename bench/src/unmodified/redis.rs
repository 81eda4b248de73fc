//! GETs of redis, asked for by its own client.
use super::Bench;
use super::rounds::Turn;
use super::servers::redis;
use super::ways::{Place, Way};
use crate::error::{Error, Result};
use crate::program::run_as;
use crate::stack::network::{Cables, client_in};

pub(super) fn measure(bench: &mut Bench<'_, '_>) -> Result<()> {
    let cables = &Cables::lay()?;
    let place = Place::of(cables);
    let requests = bench.settings.pick("20000", "100000", "300000");
    let ways = &[Way::Kernel, Way::Inline, Way::Pipeline];
    bench.in_turn("redis_get_50", ways, |bench, way| {
        let serving = way.start(bench.settings, place, &redis(bench))?;
        Turn::with_processors(&serving, || {
            let mut command = client_in(&cables.client, "redis-benchmark");
            command.args(["-h", place.host(way), "-p", serving.port, "-c", "50"]);
            command.args(["-t", "get", "--csv", "-n", requests]);
            let text = run_as("redis-benchmark", &mut command)?;
            Ok((found(&text)?, requests.parse().unwrap_or(f64::NAN)))
        })
    })
}

/// `"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"`
fn found(text: &str) -> Result<Turn> {
    let none = || Error::no_field("redis-benchmark", "GET", text);
    let line = text.lines().find(|line| line.starts_with("\"GET\""));
    let cells: Vec<&str> = line.ok_or_else(none)?.split(',').collect();
    let number = |n: usize| {
        let cell = cells.get(n).map(|cell| cell.trim_matches('"'));
        cell.and_then(|cell| cell.parse::<f64>().ok())
            .ok_or_else(none)
    };
    Ok(Turn {
        p50_us: Some(number(4)? * 1e3),
        p99_us: Some(number(6)? * 1e3),
        ..Turn::of(number(1)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_redis_benchmark_prints() {
        let text = "\"test\",\"rps\",\"avg\"\n\"GET\",\"100000.5\",\"0.2\",\"0.1\",\"0.25\",\"0.3\",\"0.5\",\"1.0\"\n";
        let turn = found(text).unwrap();
        assert_eq!(turn.value, 100_000.5);
        assert_eq!((turn.p50_us, turn.p99_us), (Some(250.0), Some(500.0)));
        assert!(found("nothing").is_err());
    }
}
