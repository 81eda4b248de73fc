//! The control socket of a server that runs: a line there, a line back.
use anyhow::{Context, bail};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// A server that does not answer by then is stopped, or busy with something else than packets.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A kind of server.
pub(crate) struct Kind {
    /// As the user started it.
    pub(crate) command: &'static str,
    /// How its control socket's name ends, unless another was given.
    pub(crate) ending: &'static str,
    /// How to say which one.
    pub(crate) select: &'static str,
}

pub(crate) struct Asked {
    path: PathBuf,
    command: &'static str,
    stream: BufReader<UnixStream>,
}

impl Asked {
    /// At `path`, or the only one of that kind that runs.
    pub(crate) fn open(kind: &Kind, path: Option<PathBuf>) -> anyhow::Result<Asked> {
        let path = path.map_or_else(|| only(kind), Ok)?;
        let stream = UnixStream::connect(&path).with_context(|| {
            format!(
                "{}: no {} takes requests there",
                path.display(),
                kind.command
            )
        })?;
        for set in [UnixStream::set_read_timeout, UnixStream::set_write_timeout] {
            set(&stream, Some(TIMEOUT)).context("setting a timeout")?;
        }
        let stream = BufReader::new(stream);
        let command = kind.command;
        Ok(Asked {
            path,
            command,
            stream,
        })
    }

    /// The answer, unless it is a refusal.
    pub(crate) fn ask(&mut self, request: &Value) -> anyhow::Result<Value> {
        let path = self.path.display();
        let mut line = request.to_string();
        line.push('\n');
        let mut answer = String::new();
        let sent = self.stream.get_mut().write_all(line.as_bytes());
        let read = sent.and_then(|()| self.stream.read_line(&mut answer));
        if read.with_context(|| format!("asking {path}"))? == 0 {
            bail!("{path}: the server has ended, or had no time for this request");
        }
        let answer: Value = serde_json::from_str(&answer)
            .with_context(|| format!("{path} gave no line of JSON: is it {}'s?", self.command))?;
        match answer["error"].as_str() {
            Some(error) => bail!("{path}: {error}"),
            None => Ok(answer),
        }
    }
}

/// Of this network namespace, by the kernel's table (`/proc/net/unix`): flags of listening, then the name.
fn only(kind: &Kind) -> anyhow::Result<PathBuf> {
    const LISTENS: &str = "00010000";
    let table = std::fs::read_to_string("/proc/net/unix").context("/proc/net/unix")?;
    let listening = table.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let path = words.get(7).filter(|_| words[3] == LISTENS)?;
        path.ends_with(kind.ending).then(|| PathBuf::from(path))
    });
    let mut found: Vec<PathBuf> = listening.collect();
    match (found.pop(), found.len()) {
        (Some(path), 0) => Ok(path),
        (None, _) => bail!("no running {} found: give {}", kind.command, kind.select),
        (Some(_), others) => bail!(
            "{} control sockets found: select one with {}",
            others + 1,
            kind.select
        ),
    }
}
