//! What other tools find on the same cable, where they are installed: whether our figures are those
//! that everybody else would find.
use super::Bench;
use super::round_trips::{Cable, SERVER, c_server, in_turn};
use crate::error::{Error, Result};
use crate::program::{run, run_as};
use hopscope_compare::comparison::Comparison;
use serde::Serialize;
use serde_json::Value;
use std::process::{Child, Command, Stdio};

pub(crate) struct Check {
    pub(crate) name: &'static str,
    pub(crate) measure: fn(&mut Bench<'_, '_>) -> Result<Other>,
}

pub(crate) const CHECKS: [Check; 2] = [
    Check {
        name: "tcp rr against sockperf",
        measure: sockperf,
    },
    Check {
        name: "tcp stream against iperf3",
        measure: iperf3,
    },
];

/// The smallest message that sockperf sends, in bytes.
const SIZE: u32 = 14;

/// A is the other tool, B is hopscope.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Other {
    pub(crate) name: &'static str,
    pub(crate) quantity: &'static str,
    pub(crate) tool: String,
    #[serde(flatten)]
    pub(crate) comparison: Comparison,
}

/// Ends with its owner.
struct Background(Child);

impl Background {
    fn start(mut command: Command) -> Result<Background> {
        let name = command.get_program().to_string_lossy().into_owned();
        let command = command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.stderr(Stdio::null()).spawn();
        child.map(Background).map_err(Error::start(name))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn version(program: &str) -> Result<String> {
    let said = run(Command::new(program).arg("--version"))?;
    Ok(said.lines().next().unwrap_or(program).trim().to_string())
}

/// Waits until a TCP port of the namespace listens, by asking its table of sockets.
fn await_listener(cable: &Cable, port: u16) -> Result<()> {
    let wanted = format!(":{port:04X} 00000000:0000 0A");
    for _ in 0..10_000 {
        let table = run(cable.server.command("cat").arg("/proc/net/tcp"))?;
        if table.contains(&wanted) {
            return Ok(());
        }
        let other = run(cable.server.command("cat").arg("/proc/net/tcp6"))?;
        if other.contains(&format!(
            ":{port:04X} 00000000000000000000000000000000:0000 0A"
        )) {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    Err(Error::NotReady {
        program: format!("the server on port {port}"),
        seconds: 10,
        said: String::new(),
    })
}

fn sockperf(bench: &mut Bench<'_, '_>) -> Result<Other> {
    let tool = version("sockperf")?;
    let cable = Cable::lay()?;
    let port = 11111;
    let mut server = cable.server.urgent("sockperf");
    server.args(["server", "--tcp", "-i", SERVER, "-p", &port.to_string()]);
    let _server = Background::start(server)?;
    await_listener(&cable, port)?;
    let echo = c_server(cable.server.urgent(&bench.programs.rr), SIZE)?;
    let comparison = in_turn(
        bench,
        "tcp rr against sockperf",
        bench.rounds_of_others,
        |bench| {
            let mut command = cable.client.urgent("sockperf");
            let seconds = bench.seconds().to_string();
            command.args(["ping-pong", "--tcp", "--full-rtt", "-m", &SIZE.to_string()]);
            command.args(["-i", SERVER, "-p", &port.to_string(), "-t", &seconds]);
            percentile(&run_as("sockperf", &mut command)?)
        },
        |bench| {
            let program = cable.client.urgent(bench.load.binary());
            let ms = bench.milliseconds;
            let ran = bench.load.round_trips(program, SERVER, &echo, SIZE, ms)?;
            Ok(ran.p50_ns)
        },
    )?;
    Ok(Other {
        name: "tcp rr against sockperf",
        quantity: "round trip, 14 B, p50, ns",
        tool,
        comparison,
    })
}

/// `---> percentile 50.000 =   12.345`, in microseconds.
fn percentile(said: &str) -> Result<f64> {
    let line = said.lines().find(|l| l.contains("percentile 50.0"));
    let us = line.and_then(|l| l.rsplit('=').next()?.trim().parse::<f64>().ok());
    us.map(|us| us * 1e3).ok_or_else(|| {
        Error::no_field(
            "sockperf",
            "percentile 50",
            said.lines().last().unwrap_or_default(),
        )
    })
}

fn iperf3(bench: &mut Bench<'_, '_>) -> Result<Other> {
    let tool = version("iperf3")?;
    let cable = Cable::lay()?;
    let mut server = cable.server.urgent("iperf3");
    server.args(["-s", "-B", SERVER]);
    let _server = Background::start(server)?;
    await_listener(&cable, 5201)?;
    let sink = bench.load.sink(&cable.server, SERVER)?;
    let comparison = in_turn(
        bench,
        "tcp stream against iperf3",
        bench.rounds_of_others,
        |bench| {
            let mut command = cable.client.urgent("iperf3");
            let seconds = bench.seconds().to_string();
            // What one write carries on both sides.
            command.args(["-c", SERVER, "-J", "-l", "128K", "-t", &seconds]);
            let said: Value =
                serde_json::from_str(&run_as("iperf3", &mut command)?).unwrap_or_default();
            let bits = said["end"]["sum_received"]["bits_per_second"].as_f64();
            bits.ok_or_else(|| Error::no_field("iperf3", "end.sum_received.bits_per_second", ""))
        },
        |bench| {
            bench
                .load
                .stream_bits_per_s(&cable.client, SERVER, &sink, bench.milliseconds)
        },
    )?;
    Ok(Other {
        name: "tcp stream against iperf3",
        quantity: "bits a second received, 128 KiB writes",
        tool,
        comparison,
    })
}
