//! What the client counts is what the server counts.
use super::{balance, number, summary};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, counts, hopscope, hopscope_bin, scratch};
use nix::sched::{CloneFlags, unshare};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

pub(super) fn register(suite: &mut Suite) {
    suite.case(
        "load_connections::round_trips_are_counted_alike",
        &[],
        round_trips,
    );
    suite.case(
        "load_connections::short_connections_are_counted_alike",
        &[],
        short,
    );
    suite.case("load_connections::streams_are_counted_alike", &[], streams);
    suite.case(
        "load_connections::a_thousand_clients_at_once",
        &[],
        thousand,
    );
    suite.case("load_connections::warm_up_is_not_measured", &[], warmup);
    suite.case("load_connections::intervals_add_up", &[], intervals);
    let netns = &[Requirement::Root, Requirement::Netns];
    let name = "load_connections::ports_in_time_wait_are_said";
    suite.case(name, netns, time_wait);
}

/// Our own server, that ends with this.
pub(super) struct Own {
    child: Child,
    addresses: Vec<String>,
}

impl Own {
    pub(super) fn start(arguments: &[&str]) -> Result<Own> {
        let mut child = Command::new(hopscope_bin())
            .args(["load", "tcp", "serve", "--listen", "127.0.0.1:0"])
            .args(["--stats", "127.0.0.1:0", "--until-stdin-ends", "--json"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.as_mut().context("piped")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let ready: Value = serde_json::from_str(&line)?;
        let address = |key: &str| ready[key].as_str().map(str::to_string);
        let addresses = [address("listen"), address("stats")];
        let addresses = addresses.into_iter().flatten().collect();
        Ok(Own { child, addresses })
    }

    /// Where it serves, and where it tells its counts.
    pub(super) fn addresses(&self) -> [&str; 2] {
        [0, 1].map(|at| self.addresses.get(at).map_or("", String::as_str))
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

fn round_trips() -> Result<()> {
    let count = counts().pick(5_000, 100_000);
    let total = count.to_string();
    for (service, sizes) in [
        (vec!["--threads", "2"], vec!["--size", "64"]),
        (
            vec![
                "--service",
                "respond",
                "--request",
                "100",
                "--response",
                "1000",
            ],
            vec!["--size", "100", "--response", "1000"],
        ),
        (
            vec![
                "--service",
                "respond",
                "--request",
                "128K",
                "--response",
                "1",
            ],
            vec!["--size", "128K", "--response", "1", "--depth", "3"],
        ),
    ] {
        let server = Own::start(&service)?;
        let [listen, stats] = server.addresses();
        for pace in [
            vec!["--closed"],
            vec!["--rate", "20k", "--arrivals", "poisson"],
        ] {
            let run = ["rr", listen, "--server-stats", stats, "-c", &total];
            let shape = ["-n", "20", "--threads", "2"];
            let run = summary(&[&run[..], &shape, &sizes, &pace].concat(), 0)?;
            balance(&run)?;
            ensure!(number(&run, "/done")? == count, "{run}");
            ensure!(number(&run, "/latency/count")? == count, "{run}");
            ensure!(number(&run, "/server/counts/accepted")? == 20, "{run}");
            for (ours, theirs) in [
                ("/bytes_sent", "/server/counts/bytes_received"),
                ("/bytes_received", "/server/counts/bytes_sent"),
            ] {
                ensure!(
                    number(&run, ours)? == number(&run, theirs)?,
                    "{ours}: {run}"
                );
            }
        }
    }
    Ok(())
}

/// Why the rate of short connections falls is said.
fn time_wait() -> Result<()> {
    unshare(CloneFlags::CLONE_NEWNET)?;
    let up = run(Command::new("ip").args(["link", "set", "lo", "up"]))?;
    up.expect_code(0)?;
    std::fs::write("/proc/sys/net/ipv4/ip_local_port_range", "40000 40199")?;
    let words = ["load", "tcp", "crr", "--serve-here", "--closed", "-c"];
    let few = hopscope(&[&words[..], &["20"]].concat())?.expect_code(0)?;
    ensure!(!few.stdout.contains("TIME_WAIT"), "{}", few.stdout);
    let many = hopscope(&[&words[..], &["120"]].concat())?.expect_code(0)?;
    ensure!(
        many.stdout.contains("of 200 local ports are in TIME_WAIT"),
        "{}",
        many.stdout
    );
    Ok(())
}

/// One connection more than requests: the one that looks whether the server is there.
fn short() -> Result<()> {
    let server = Own::start(&["--threads", "2"])?;
    let [listen, stats] = server.addresses();
    for close in ["orderly", "reset"] {
        for pace in [vec!["--closed"], vec!["--rate", "2000"]] {
            let words = [
                "crr",
                listen,
                "--server-stats",
                stats,
                "-c",
                "1000",
                "-n",
                "16",
            ];
            let run = summary(&[&words[..], &["--close", close], &pace].concat(), 0)?;
            balance(&run)?;
            ensure!(number(&run, "/done")? == 1000, "{run}");
            ensure!(number(&run, "/connect/count")? == 1000, "{run}");
            ensure!(number(&run, "/server/counts/accepted")? == 1001, "{run}");
            ensure!(
                number(&run, "/server/counts/bytes_received")? == 64_000,
                "{run}"
            );
        }
    }
    Ok(())
}

/// The run ends when the sink has everything.
fn streams() -> Result<()> {
    for (size, connections) in [("128K", 1), ("1000", 8), ("1", 2)] {
        let connections = connections.to_string();
        let words = [
            "stream",
            "--serve-here",
            "-c",
            "1000",
            "--size",
            size,
            "-n",
            &connections,
        ];
        let run = summary(&words, 0)?;
        balance(&run)?;
        ensure!(number(&run, "/done")? == 1000, "{run}");
        let (sent, received) = ("/bytes_sent", "/server/counts/bytes_received");
        ensure!(number(&run, sent)? == number(&run, received)?, "{run}");
    }
    let run = summary(
        &[
            "stream",
            "--serve-here",
            "--reverse",
            "-c",
            "200",
            "-n",
            "3",
        ],
        0,
    )?;
    balance(&run)?;
    ensure!(number(&run, "/done")? >= 200, "{run}");
    Ok(())
}

fn thousand() -> Result<()> {
    let rounds = counts().pick(2, 20).to_string();
    let run = summary(&["echo", "--serve-here", "--rounds", &rounds], 0)?;
    balance(&run)?;
    let asked = number(&run, "/asked")?;
    ensure!(asked == 1000 * rounds.parse::<u64>()?, "{run}");
    for figures in ["latency", "connect", "exchange"] {
        ensure!(
            number(&run, &format!("/{figures}/count"))? == asked,
            "{figures}: {run}"
        );
    }
    Ok(())
}

fn warmup() -> Result<()> {
    let words = [
        "rr",
        "--serve-here",
        "--rate",
        "1000",
        "--warmup",
        "300ms",
        "-c",
        "500",
    ];
    let run = summary(&words, 0)?;
    balance(&run)?;
    ensure!(number(&run, "/asked")? == 500, "{run}");
    ensure!(number(&run, "/warmup_asked")? == 300, "{run}");
    Ok(())
}

/// The histogram file holds what the summary says, and the lines of the seconds add up to it.
fn intervals() -> Result<()> {
    let file = scratch().join("latency.hgrm");
    let path = file.to_str().context("path")?;
    let words = [
        "load",
        "tcp",
        "rr",
        "--serve-here",
        "--rate",
        "2000",
        "-d",
        "2500ms",
    ];
    let out = hopscope_tests::hopscope(&[&words[..], &["--json", "--hdr", path]].concat())?;
    let lines: Vec<Value> = out
        .expect_code(0)?
        .stdout
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    let (end, seconds) = lines.split_last().context("no line")?;
    ensure!(seconds.len() >= 2, "{lines:?}");
    let sum: Result<u64> = seconds
        .iter()
        .map(|line| number(line, "/latency/count"))
        .sum();
    let done = number(end, "/done")?;
    ensure!(done == 5000 && sum? == done, "{lines:?}");
    let table = std::fs::read_to_string(&file)?;
    ensure!(table.contains("Total count    =         5000]"), "{table}");
    Ok(())
}
