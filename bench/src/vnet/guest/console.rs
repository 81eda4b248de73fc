//! What the guest's shell is told, and what it says: lines over the machine's third serial line (`agent.sh`).
use crate::error::{Error, Result};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

const NAME: &str = "the guest's shell";
/// Far above what was ever seen: against hanging only.
const SILENCE: Duration = Duration::from_secs(120);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

pub(super) struct Talk(BufReader<UnixStream>);

impl Talk {
    /// Once the guest's shell listens; `ended` says whether there is a machine at all any more.
    pub(super) fn begin(socket: &Path, ended: &dyn Fn() -> bool) -> Result<Talk> {
        let began = Instant::now();
        let stream = loop {
            match UnixStream::connect(socket) {
                Ok(stream) => break stream,
                Err(error) if ended() || began.elapsed() > SILENCE => {
                    return Err(Error::file("connect to", socket)(error));
                }
                Err(_) => std::thread::sleep(LOOK_AGAIN),
            }
        };
        let set = stream.set_read_timeout(Some(SILENCE));
        set.map_err(Error::file("connect to", socket))?;
        let mut talk = Talk(BufReader::new(stream));
        match talk.line()?.as_str() {
            "ready" => Ok(talk),
            other => Err(failed("its first line", other.into())),
        }
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        let read = self.0.read_line(&mut line);
        match read.map_err(Error::file("read from", NAME))? {
            0 => Err(failed("its end", String::new())),
            _ => Ok(line.trim_end().to_owned()),
        }
    }

    fn say(&mut self, line: &str) -> Result<()> {
        let said = writeln!(self.0.get_mut(), "{line}");
        said.map_err(Error::file("write to", NAME))
    }

    /// What a line of the shell's printed, if it went well.
    pub(super) fn ask(&mut self, line: &str) -> Result<Vec<String>> {
        self.say(line)?;
        let mut said = Vec::new();
        loop {
            let answer = self.line()?;
            match answer.strip_prefix("end ") {
                Some("0") => return Ok(said),
                Some(code) => return Err(failed(&format!("{code}: {line}"), said.join(" / "))),
                None => said.push(answer),
            }
        }
    }

    pub(super) fn leave(mut self) -> Result<()> {
        self.say("leave")
    }
}

fn failed(status: &str, said: String) -> Error {
    Error::failed(NAME, status, said)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn talk(answers: &str) -> (Talk, UnixStream) {
        let (here, mut there) = UnixStream::pair().unwrap();
        there.write_all(answers.as_bytes()).unwrap();
        (Talk(BufReader::new(here)), there)
    }

    #[test]
    fn an_answer_ends_with_its_code() {
        let (mut talk, _there) = talk("a\nb\nend 0\nend 0\nno such thing\nend 1\n");
        assert_eq!(talk.ask("first").unwrap(), ["a", "b"]);
        assert!(talk.ask("second").unwrap().is_empty());
        let error = talk.ask("third").unwrap_err().to_string();
        assert!(
            error.contains("no such thing") && error.contains("1: third"),
            "{error}"
        );
    }

    #[test]
    fn a_machine_that_went_is_said() {
        let (mut talk, there) = talk("half of\n");
        drop(there);
        assert!(talk.ask("it").is_err());
    }
}
