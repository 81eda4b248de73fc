//! The control socket of a `vnet serve` that runs: a line there, a line back.
use anyhow::{Context, bail};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// A back end that does not answer by then is stopped, or busy with something else than packets.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(clap::Args)]
pub(super) struct Which {
    /// The back end's --socket; optional if only one runs
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// The back end's --control, if it was given one
    #[arg(long, value_name = "PATH", conflicts_with = "socket")]
    control: Option<PathBuf>,
}

pub(super) struct Asked {
    path: PathBuf,
    stream: BufReader<UnixStream>,
}

impl Asked {
    pub(super) fn open(which: &Which) -> anyhow::Result<Asked> {
        let path = match (&which.control, &which.socket) {
            (Some(path), _) => path.clone(),
            (None, Some(socket)) => super::serve::control_of(socket),
            (None, None) => only()?,
        };
        let stream = UnixStream::connect(&path)
            .with_context(|| format!("{}: no vnet serve takes requests there", path.display()))?;
        for set in [UnixStream::set_read_timeout, UnixStream::set_write_timeout] {
            set(&stream, Some(PATIENCE)).context("setting a timeout")?;
        }
        let stream = BufReader::new(stream);
        Ok(Asked { path, stream })
    }

    /// The answer, unless it is a refusal.
    pub(super) fn ask(&mut self, request: &Value) -> anyhow::Result<Value> {
        let path = self.path.display();
        let mut line = request.to_string();
        line.push('\n');
        let mut answer = String::new();
        let sent = self.stream.get_mut().write_all(line.as_bytes());
        let read = sent.and_then(|()| self.stream.read_line(&mut answer));
        if read.with_context(|| format!("asking {path}"))? == 0 {
            bail!("{path}: the back end has ended, or had no time for this request");
        }
        let answer: Value = serde_json::from_str(&answer)
            .with_context(|| format!("{path} gave no line of JSON: is it vnet serve's?"))?;
        match answer["error"].as_str() {
            Some(error) => bail!("{path}: {error}"),
            None => Ok(answer),
        }
    }
}

/// Of this network namespace, by the kernel's table (`/proc/net/unix`): flags of listening, then the name.
fn only() -> anyhow::Result<PathBuf> {
    const LISTENS: &str = "00010000";
    let table = std::fs::read_to_string("/proc/net/unix").context("/proc/net/unix")?;
    let listening = table.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let path = words.get(7).filter(|_| words[3] == LISTENS)?;
        path.ends_with(".control").then(|| PathBuf::from(path))
    });
    let mut found: Vec<PathBuf> = listening.collect();
    match (found.pop(), found.len()) {
        (Some(path), 0) => Ok(path),
        (None, _) => bail!("no running vnet serve found: give --socket PATH"),
        (Some(_), others) => bail!(
            "{} control sockets found: select one with --socket PATH",
            others + 1
        ),
    }
}
