//! The proxy under test, and an upstream that the test plays itself.
use crate::splice_echo::number;
use anyhow::{Context, Result, bail, ensure};
use hopscope_tests::hopscope_bin;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

/// Only what hangs is waited for so long.
const WATCHDOG: Duration = Duration::from_secs(20);

pub(super) struct Proxy {
    child: Child,
    stdout: BufReader<ChildStdout>,
    pub(super) address: SocketAddr,
}

impl Proxy {
    /// On a free port of 127.0.0.1.
    pub(super) fn start(engine: &str, to: SocketAddr, words: &[&str]) -> Result<Proxy> {
        let words = [&["--engine", engine, "--listen", "127.0.0.1:0"], words].concat();
        Proxy::start_by(Command::new(hopscope_bin()), to, &words)
    }

    /// `command` is the binary, somewhere.
    pub(super) fn start_by(mut command: Command, to: SocketAddr, words: &[&str]) -> Result<Proxy> {
        command
            .args(["splice", "proxy", "--until-stdin-ends", "--json"])
            .args(["--to", &to.to_string()])
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().context("starting the proxy")?;
        let stdout = child.stdout.take().context("its stdout")?;
        let mut stdout = BufReader::new(stdout);
        let mut line = String::new();
        stdout.read_line(&mut line)?;
        ensure!(!line.is_empty(), "the proxy {words:?} did not start");
        let ready: Value = serde_json::from_str(&line).with_context(|| line.clone())?;
        let address = ready["listen"].as_str().context("no address")?.parse()?;
        Ok(Proxy {
            child,
            stdout,
            address,
        })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn client(&self) -> Result<TcpStream> {
        let stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(WATCHDOG))?;
        Ok(stream)
    }

    pub(super) fn signal(&self, signal: Signal) -> Result<()> {
        kill(Pid::from_raw(self.pid() as i32), signal)?;
        if signal == Signal::SIGSTOP {
            // It has stopped when the kernel says so.
            let stat = format!("/proc/{}/stat", self.pid());
            while !std::fs::read_to_string(&stat)?.contains(") T ") {
                std::thread::yield_now();
            }
        }
        Ok(())
    }

    /// The next line that it says.
    pub(super) fn line(&mut self) -> Result<Value> {
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        serde_json::from_str(&line).with_context(|| format!("no line: {line:?}"))
    }

    /// Ends it as Ctrl-C does; its summary.
    pub(super) fn finish(mut self) -> Result<Value> {
        drop(self.child.stdin.take());
        let summary = loop {
            let line = self.line()?;
            if line["type"] == "summary" {
                break line;
            }
        };
        let status = self.child.wait()?;
        ensure!(status.success(), "the proxy: {status}: {summary}");
        let ends = [
            "ended",
            "reset_by_client",
            "reset_by_upstream",
            "failed",
            "connect_refused",
            "connect_failed",
            "connect_timed_out",
            "idle_timed_out",
            "gone_before_connect",
            "over_limit",
            "open_at_stop",
            "open",
        ];
        let mut sum = 0;
        for name in ends {
            sum += number(&summary, &format!("/{name}"))?;
        }
        ensure!(
            number(&summary, "/accepted")? == sum && number(&summary, "/open")? == 0,
            "the ends do not add up: {summary}"
        );
        Ok(summary)
    }

    /// As nobody can prepare for.
    pub(super) fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Of this process.
pub(super) fn upstream() -> Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

pub(super) fn accepted(listener: &TcpListener) -> Result<TcpStream> {
    let (stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(WATCHDOG))?;
    Ok(stream)
}

pub(super) fn comes(stream: &mut TcpStream, bytes: &[u8]) -> Result<()> {
    let mut got = vec![0; bytes.len()];
    stream.read_exact(&mut got).context("nothing came")?;
    ensure!(got == bytes, "{got:?} instead of {bytes:?}");
    Ok(())
}

pub(super) fn ends(stream: &mut TcpStream) -> Result<()> {
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).context("no end")?;
    ensure!(rest.is_empty(), "{} B behind the end", rest.len());
    Ok(())
}

pub(super) fn is_reset(stream: &mut TcpStream) -> Result<()> {
    match stream.read(&mut [0; 64]) {
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => Ok(()),
        other => bail!("{other:?} instead of a reset"),
    }
}

pub(super) fn reset(stream: TcpStream) -> Result<()> {
    use nix::sys::socket::{setsockopt, sockopt};
    let linger = nix::libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    Ok(setsockopt(&stream, sockopt::Linger, &linger)?)
}

/// Bytes of both engines in a direction, `up` or `down`: user space's, the kernel's.
pub(super) fn moved(summary: &Value, direction: &str) -> Result<(u64, u64)> {
    let user = number(summary, &format!("/user_bytes_{direction}"))?;
    let kernel = summary.pointer(&format!("/kernel/bytes_{direction}"));
    Ok((user, kernel.and_then(Value::as_u64).unwrap_or(0)))
}
