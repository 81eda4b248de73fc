//! The server under test.
use anyhow::{Context, Result, ensure};
use hopscope_tests::hopscope_bin;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};

pub(crate) struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
    pub(crate) address: SocketAddr,
}

impl Server {
    pub(crate) fn start(words: &[&str]) -> Result<Server> {
        Server::start_by(Command::new(hopscope_bin()), words)
    }

    /// `command` is the binary, somewhere.
    pub(crate) fn start_by(mut command: Command, words: &[&str]) -> Result<Server> {
        command
            .args(["splice", "echo", "--until-stdin-ends", "--json"])
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().context("starting the server")?;
        let stdout = child.stdout.take().context("its stdout")?;
        let mut stdout = BufReader::new(stdout);
        let mut line = String::new();
        stdout.read_line(&mut line)?;
        ensure!(!line.is_empty(), "the server {words:?} did not start");
        let ready: Value = serde_json::from_str(&line).with_context(|| line.clone())?;
        let address = ready["listen"].as_str().context("no address")?.parse()?;
        Ok(Server {
            child,
            stdout,
            address,
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it as Ctrl-C does; its summary.
    pub(crate) fn finish(mut self) -> Result<Value> {
        drop(self.child.stdin.take());
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        let status = self.child.wait()?;
        ensure!(status.success(), "the server: {status}: {line}");
        let summary: Value = serde_json::from_str(&line).with_context(|| line.clone())?;
        let number = |name: &str| summary[name].as_u64().unwrap_or(u64::MAX);
        let ends = ["ended", "reset", "failed", "over_limit", "open_at_stop"];
        let ends: u64 = ends.iter().map(|name| number(name)).sum();
        ensure!(
            number("accepted") == ends,
            "the ends do not add up: {summary}"
        );
        Ok(summary)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
