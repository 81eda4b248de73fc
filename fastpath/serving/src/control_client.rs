//! The control socket of a server that runs: a line there, a line back.
use serde_json::Value;
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// A server that does not answer by then is stopped, or busy with something else than packets.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A kind of server.
pub struct Server {
    /// As the user started it.
    pub command: &'static str,
    /// How its control socket's name ends, unless another was given.
    pub ending: &'static str,
    /// How to say which one.
    pub select: &'static str,
}

/// What a long answer takes more than a short one, for each of its rows: servers spend a tenth of their time on it.
const ROW: Duration = Duration::from_millis(5);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("{0}")]
    Refused(String),
    #[error("{doing}")]
    Failed { doing: String, source: io::Error },
}

fn failed<E: Into<io::Error>>(doing: impl Into<String>) -> impl FnOnce(E) -> ClientError {
    let doing = doing.into();
    |source| ClientError::Failed {
        doing,
        source: source.into(),
    }
}

/// How often a request is repeated, and after what time.
pub struct Readings {
    interval: Option<Duration>,
    readings: u64,
}

impl Readings {
    /// Without an interval one; else `count`, or for ever. Rates need one more reading, before the first; totals do not.
    pub fn new(interval: Option<Duration>, count: Option<u64>, are_totals: bool) -> Readings {
        let more = u64::from(!are_totals);
        let readings = match interval {
            None => 1,
            Some(_) => count.map_or(u64::MAX, |n| n.saturating_add(more)),
        };
        Readings { interval, readings }
    }
}

pub struct ControlClient {
    path: PathBuf,
    command: &'static str,
    stream: BufReader<UnixStream>,
}

impl ControlClient {
    /// At `path`, or the only one of that kind that runs.
    ///
    /// # Errors
    /// None runs, or several do; it does not take requests.
    pub fn open(server: &Server, path: Option<PathBuf>) -> Result<ControlClient, ClientError> {
        let path = path.map_or_else(|| only(server), Ok)?;
        let command = server.command;
        let stream = UnixStream::connect(&path);
        let refused = format!("{}: no {command} takes requests there", path.display());
        let stream = stream.map_err(failed(refused))?;
        for set in [UnixStream::set_read_timeout, UnixStream::set_write_timeout] {
            set(&stream, Some(TIMEOUT)).map_err(failed("setting a timeout"))?;
        }
        let stream = BufReader::new(stream);
        Ok(ControlClient {
            path,
            command,
            stream,
        })
    }

    /// [`ControlClient::ask`], for an answer of so many rows.
    ///
    /// # Errors
    /// As there.
    pub fn ask_for_rows(&mut self, rows: u32, request: &Value) -> Result<Value, ClientError> {
        let patience = TIMEOUT + ROW * rows;
        let set = self.stream.get_ref().set_read_timeout(Some(patience));
        set.map_err(failed("setting a timeout"))?;
        self.ask(request)
    }

    /// The answer, unless it is a refusal.
    ///
    /// # Errors
    /// It is one; or none comes that can be read.
    pub fn ask(&mut self, request: &Value) -> Result<Value, ClientError> {
        let path = self.path.display().to_string();
        let mut line = request.to_string();
        line.push('\n');
        let mut answer = String::new();
        let sent = self.stream.get_mut().write_all(line.as_bytes());
        let read = sent.and_then(|()| self.stream.read_line(&mut answer));
        if read
            .as_ref()
            .is_err_and(|e| e.kind() == ErrorKind::WouldBlock)
        {
            let late =
                format!("{path}: no answer in time: the server is stopped, or has no processor");
            return Err(ClientError::Refused(late));
        }
        if read.map_err(failed(format!("asking {path}")))? == 0 {
            let ended = format!("{path}: the server has ended, or had no time for this request");
            return Err(ClientError::Refused(ended));
        }
        let command = self.command;
        let other = format!("{path} gave no line of JSON: is it {command}'s?");
        let answer: Value = serde_json::from_str(&answer).map_err(failed(other))?;
        match answer["error"].as_str() {
            Some(error) => Err(ClientError::Refused(format!("{path}: {error}"))),
            None => Ok(answer),
        }
    }

    /// Gives each answer to `show`.
    ///
    /// # Errors
    /// As [`ControlClient::ask`], and those of `show`.
    pub fn read<E: From<ClientError>>(
        &mut self,
        request: &Value,
        readings: &Readings,
        mut show: impl FnMut(Value) -> Result<(), E>,
    ) -> Result<(), E> {
        for n in 0..readings.readings {
            if let Some(interval) = readings.interval.filter(|_| n > 0) {
                std::thread::sleep(interval);
            }
            show(self.ask(request)?)?;
        }
        Ok(())
    }
}

/// Of this network namespace, by the kernel's table (`/proc/net/unix`): flags of listening, then the name.
fn only(server: &Server) -> Result<PathBuf, ClientError> {
    const LISTENS: &str = "00010000";
    let table = std::fs::read_to_string("/proc/net/unix").map_err(failed("/proc/net/unix"))?;
    let listening = table.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let path = words.get(7).filter(|_| words[3] == LISTENS)?;
        path.ends_with(server.ending).then(|| PathBuf::from(path))
    });
    let mut found: Vec<PathBuf> = listening.collect();
    match (found.pop(), found.len()) {
        (Some(path), 0) => Ok(path),
        (None, _) => Err(ClientError::Refused(format!(
            "no running {} found in this network namespace: give {}",
            server.command, server.select
        ))),
        (Some(_), others) => Err(ClientError::Refused(format!(
            "{} control sockets found: select one with {}",
            others + 1,
            server.select
        ))),
    }
}
