//! `hopscope load packets` from outside: what it sends is what other tools read, what it says adds
//! up, and what it cannot do it says in one line.
use anyhow::{Context, Result, ensure};
use hopscope_tests::Suite;
use hopscope_tests::command::{Output, run};
use serde_json::Value;
use std::process::Command;

mod frames;
mod refusals;
mod runs;

pub(crate) fn register(suite: &mut Suite) {
    frames::register(suite);
    runs::register(suite);
    refusals::register(suite);
}

/// `hopscope load packets ARGUMENTS`, here or in a namespace.
fn packets(namespace: Option<&str>, arguments: &[&str]) -> Result<Output> {
    let binary = hopscope_tests::hopscope_bin();
    let mut command = match namespace {
        None => Command::new(binary),
        Some(name) => {
            let mut command = Command::new("ip");
            command.args(["netns", "exec", name]).arg(binary);
            command
        }
    };
    run(command.args(["load", "packets"]).args(arguments))
}

/// Lines of JSON; the last is the summary.
fn lines(output: Output) -> Result<(Vec<Value>, Value)> {
    let output = output.expect_code(0)?;
    let parsed: Result<Vec<Value>, _> = output.stdout.lines().map(serde_json::from_str).collect();
    let mut lines = parsed.with_context(|| output.stdout.clone())?;
    ensure!(
        lines.iter().all(|line| line["schema"] == 1),
        "a line without its schema"
    );
    let summary = lines.pop().context("nothing on stdout")?;
    ensure!(summary["type"] == "summary", "the last line is {summary}");
    Ok((lines, summary))
}

fn number(line: &Value, field: &str) -> Result<u64> {
    line[field]
        .as_u64()
        .with_context(|| format!("no {field} in {line}"))
}

/// A namespace with a cable from `p0` to `p1`; gone when the case ends.
struct Cable(String);

impl Cable {
    fn lay(name: &str) -> Result<Cable> {
        let cable = Cable(format!("hopscope-{name}-{}", std::process::id()));
        let ip = |arguments: &[&str]| run(Command::new("ip").args(arguments))?.expect_code(0);
        ip(&["netns", "add", &cable.0])?;
        // Nothing but our own frames: a namespace has its own setting for new devices.
        let quiet = "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6";
        ip(&["netns", "exec", &cable.0, "sh", "-c", quiet])?;
        ip(&[
            "-n", &cable.0, "link", "add", "p0", "type", "veth", "peer", "name", "p1",
        ])?;
        for end in ["p0", "p1"] {
            ip(&["-n", &cable.0, "link", "set", end, "up"])?;
        }
        Ok(cable)
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        if let Err(error) = run(Command::new("ip").args(["netns", "del", &self.0])) {
            eprintln!("{error:#}");
        }
    }
}
