//! Round trips over TCP: hopscope's client and a minimal one in C, in turn, over the same cable.
use super::Bench;
use super::commands::RoundTrips as Ran;
use super::network::{Namespace, Server};
use crate::error::{Error, Result};
use crate::program::run_as;
use crate::said;
use hopscope_compare::comparison::Comparison;
use hopscope_compare::interleave::{Runs, Side, interleave};
use serde::Serialize;
use serde_json::{Value, json};
use std::process::Command;

/// Bytes each way.
pub(crate) const SIZE: u32 = 1;
pub(crate) const SERVER: &str = "10.0.0.2";

/// Two ends of a cable, each in a namespace of its own: traffic goes through both stacks.
pub(crate) struct Cable {
    pub(crate) client: Namespace,
    pub(crate) server: Namespace,
}

impl Cable {
    pub(crate) fn lay() -> Result<Cable> {
        let (client, server) = (Namespace::new()?, Namespace::new()?);
        client.cable("c0", &server, "s0")?;
        client.address("c0", "10.0.0.1")?;
        server.address("s0", SERVER)?;
        Ok(Cable { client, server })
    }
}

/// Runs `a` and `b` in turn, `a` again as the control; each returns one number.
pub(crate) fn in_turn(
    bench: &mut Bench<'_, '_>,
    what: &str,
    rounds: usize,
    mut a: impl FnMut(&Bench<'_, '_>) -> Result<f64>,
    mut b: impl FnMut(&Bench<'_, '_>) -> Result<f64>,
) -> Result<Comparison> {
    let mut last = None;
    let runs = interleave(rounds, |round, side| {
        if last.replace(round) != Some(round) {
            bench.say(what, round, rounds);
        }
        let value = match side {
            Side::A | Side::Control => a(bench)?,
            Side::B => b(bench)?,
        };
        bench.sample(json!({"what": what, "round": round, "side": side, "value": value}))?;
        Ok::<_, Error>(value)
    })?;
    Ok(Comparison::of(&runs)?)
}

/// The server in C, started by `command`.
pub(crate) fn c_server(mut command: Command, size: u32) -> Result<Server> {
    command.args(["server", &size.to_string()]);
    Server::start("the C server", command)
}

/// Nanoseconds of a round trip; A is the C client, B hopscope's. The server in C answers both, on the
/// client's processor: on another one most of the time would be the other's waking up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct RoundTrips {
    /// Medians of the round trips of each run: what the clients do, not who else wanted the
    /// processor meanwhile.
    pub(crate) p50: Comparison,
    /// Means, which are that too.
    pub(crate) mean: Comparison,
}

pub(crate) fn measure(bench: &mut Bench<'_, '_>) -> Result<RoundTrips> {
    let cable = Cable::lay()?;
    let server = c_server(cable.server.on_one_processor(&bench.programs.rr), SIZE)?;
    let rounds = bench.rounds;
    let mut last = None;
    let mut means = Runs::default();
    let p50 = interleave(rounds, |round, side| {
        if last.replace(round) != Some(round) {
            bench.say("round trips beside a C client", round, rounds);
        }
        let ran = match side {
            Side::A | Side::Control => c_client(bench, &cable, &server)?,
            Side::B => {
                let program = cable.client.on_one_processor(bench.load.binary());
                let ms = bench.milliseconds;
                bench.load.round_trips(program, SERVER, &server, SIZE, ms)?
            }
        };
        means.push(side, ran.mean_ns);
        bench.sample(json!({
            "what": "round_trip", "round": round, "side": side,
            "p50_ns": ran.p50_ns, "mean_ns": ran.mean_ns,
        }))?;
        Ok::<_, Error>(ran.p50_ns)
    })?;
    Ok(RoundTrips {
        p50: Comparison::of(&p50)?,
        mean: Comparison::of(&means)?,
    })
}

fn c_client(bench: &Bench<'_, '_>, cable: &Cable, server: &Server) -> Result<Ran> {
    let mut command = cable.client.on_one_processor(&bench.programs.rr);
    let (size, ms) = (SIZE.to_string(), bench.milliseconds.to_string());
    command.args(["client", SERVER, &server.port, &size, &ms]);
    let line = run_as("the C client", &mut command)?;
    let said: Value = serde_json::from_str(&line).unwrap_or_default();
    let number = |at| said::number("the C client", &said, at);
    Ok(Ran {
        mean_ns: number("/mean_ns")?,
        p50_ns: number("/p50_ns")?,
    })
}
