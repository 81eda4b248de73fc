//! Ctrl-C reaches every process of the terminal's group: the client still has its server's counts.
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, Target, hopscope_bin};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

pub(super) fn register(suite: &mut Suite) {
    let name = "load_connections::ctrl_c_leaves_the_summary";
    suite.case(name, &[] as &[Requirement], run);
}

fn run() -> Result<()> {
    let mut command = Command::new(hopscope_bin());
    command
        .args(["load", "tcp", "rr", "--rate", "1000", "--serve-here"])
        .args(["-d", "60", "--json"])
        .process_group(0)
        .stdout(Stdio::piped());
    let mut client = Target::spawn_now(&mut command)?;
    let out = client.child().stdout.take().context("a pipe")?;
    let mut lines = BufReader::new(out).lines();
    // The first second is over: it runs.
    lines.next().context("no interval")??;
    killpg(Pid::from_raw(client.pid()), Signal::SIGINT)?;
    let rest: Vec<String> = lines.collect::<Result<_, _>>()?;
    ensure!(client.wait()?.success(), "it did not end well: {rest:?}");
    let last = rest.last().context("no summary")?;
    ensure!(last.contains("\"asked\""), "{last}");
    Ok(())
}
