//! Python's own web server: a thread for each connection.
use super::super::running::kernel_has_none;
use super::super::tools::body;
use super::side::{Mode, Side};
use crate::stack::cable::{STACK, files};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, Target, counts};
use nix::sys::signal::Signal;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Curl, Netns, Python3};
    for mode in Mode::BOTH {
        let name = format!("{}_serves_with_python_http_server", mode.prefix());
        suite.case(name, &[Netns, Python3, Curl], move || serves(mode));
    }
}

fn serves(mode: Mode) -> Result<()> {
    let side = Side::new(mode)?;
    let folder = files().join("web");
    let bytes = body(&folder, counts().pick(500_000, 20_000_000))?;
    let at = folder.display().to_string();
    // A connection for each request, and one for many.
    for (port, protocol) in [("8000", "HTTP/1.0"), ("8001", "HTTP/1.1")] {
        let program = [
            "/usr/bin/python3",
            "-u",
            "-m",
            "http.server",
            "--bind",
            STACK,
            "-d",
            &at,
            "-p",
            protocol,
            port,
        ];
        let mut command = side.command(&program);
        command.stdout(Stdio::piped());
        let mut server = side.spawns(&mut command, Target::spawn_now)?;
        let mut line = String::new();
        let mut said = BufReader::new(server.target.child().stdout.take().context("piped")?);
        said.read_line(&mut line)?;
        ensure!(line.starts_with("Serving HTTP on"), "{line}");
        kernel_has_none(port.parse()?)?;
        let to = files().join("got");
        let url = format!("http://{STACK}:{port}/body?[1-20]");
        run(Command::new("curl")
            .args([
                "-sS",
                "--max-time",
                "60",
                "-Z",
                "--parallel-max",
                "8",
                "--create-dirs",
                "-o",
            ])
            .arg(to.join("#1"))
            .arg(url))?
        .expect_code(0)?;
        for n in 1..=20 {
            let got = std::fs::read(to.join(n.to_string()))?;
            ensure!(got == bytes, "{protocol}: {n} differs");
        }
        side.ended(server, Some(Signal::SIGINT))?;
    }
    side.ends(300)
}
