//! What a web server answers, and load for it.
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

/// Only a server that hangs is waited for so long.
const WATCHDOG: Duration = Duration::from_secs(30);

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(super) status: String,
    body: Vec<u8>,
}

pub(super) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

pub(super) fn get(port: u16, path: &str, gzip: bool) -> Result<Answer> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(WATCHDOG))?;
    let accept = if gzip {
        "Accept-Encoding: gzip\r\n"
    } else {
        ""
    };
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: x\r\n{accept}Connection: close\r\n\r\n"
    )?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let end = answer
        .windows(4)
        .position(|w| w == b"\r\n\r\n")
        .context("no end of headers")?;
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    Ok(Answer {
        status: head.lines().next().unwrap_or_default().to_owned(),
        body: answer[end + 4..].to_vec(),
    })
}

/// Four connections kept alive; all answers must be good ones.
pub(super) fn load(port: u16, path: &str, duration: &str) -> Result<()> {
    let url = format!("http://127.0.0.1:{port}{path}");
    let load = run(Command::new("wrk").args(["-t1", "-c4", "-d", duration, &url]))?;
    let load = load.expect_code(0)?;
    for bad in ["Non-2xx", "Socket errors"] {
        ensure!(!load.stdout.contains(bad), "{}", load.stdout);
    }
    Ok(())
}
