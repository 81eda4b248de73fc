//! A device that goes down under the stack, and comes back, or does not.
use super::cable::{KERNEL, STACK, Way, ip, namespace};
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, hopscope_bin};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Ethtool, Netns};
    for way in [Way::Packet, Way::Xdp, Way::TapQueues] {
        let name = format!("stack::serve_survives_a_device_that_is_down_{}", way.name());
        suite.case(name, &[Netns, Ethtool], move || serve(way));
        let name = format!("stack::serve_ends_with_its_device_{}", way.name());
        suite.case(name, &[Netns, Ethtool], move || removed(way));
    }
    suite.case(
        "stack::connect_survives_a_device_that_is_down",
        &[Netns],
        connect,
    );
}

/// The stack's end of it.
fn device(way: Way) -> &'static str {
    if way == Way::TapQueues { "far" } else { "near" }
}

/// A stack whose lines on stderr are read as they come.
struct Said {
    child: Child,
    stderr: BufReader<std::process::ChildStderr>,
}

impl Said {
    fn start(words: &[&str]) -> Result<Said> {
        let mut command = Command::new(hopscope_bin());
        command.args(words).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let stderr = BufReader::new(child.stderr.take().context("a pipe")?);
        Ok(Said { child, stderr })
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.stderr.read_line(&mut line)?;
        Ok(line)
    }

    fn expect(&mut self, words: &[&str]) -> Result<()> {
        let line = self.line()?;
        for word in words {
            ensure!(line.contains(word), "no {word} in {line:?}");
        }
        Ok(())
    }
}

impl Drop for Said {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn served(way: Way) -> Result<Said> {
    let words = [
        &["stack", "serve", "--no-control", "--app=echo"],
        &way.arguments()[..],
        &[way.engines()],
    ]
    .concat();
    let mut serving = Said::start(&words)?;
    serving.expect(&["listening on", STACK])?;
    Ok(serving)
}

/// What was sent meanwhile arrives when the device is up again, over the same connection.
fn serve(way: Way) -> Result<()> {
    namespace()?;
    way.make()?;
    let mut serving = served(way)?;
    let mut stream = TcpStream::connect((STACK, 7))?;
    echo(&mut stream, b"before")?;
    ip(&format!("link set {} down", device(way)))?;
    serving.expect(&["is down", "frames are dropped"])?;
    stream.write_all(b"meanwhile")?;
    ip(&format!("link set {} up", device(way)))?;
    serving.expect(&["up again", "frames were dropped"])?;
    let mut back = [0; 9];
    stream.read_exact(&mut back)?;
    ensure!(&back == b"meanwhile", "{back:?}");
    echo(&mut stream, b"after")?;
    ensure!(serving.child.try_wait()?.is_none(), "it has ended");
    Ok(())
}

fn echo(stream: &mut TcpStream, text: &[u8]) -> Result<()> {
    stream.write_all(text)?;
    let mut back = vec![0; text.len()];
    stream.read_exact(&mut back)?;
    ensure!(back == text, "{back:?}");
    Ok(())
}

/// One that nobody talks to notices it, too.
fn removed(way: Way) -> Result<()> {
    namespace()?;
    way.make()?;
    let mut serving = served(way)?;
    ip(&format!("link del {}", device(way)))?;
    let mut last = String::new();
    loop {
        let line = serving.line()?;
        if line.is_empty() {
            break;
        }
        last = line;
    }
    let status = serving.child.wait()?;
    ensure!(status.code() == Some(2), "{status}: {last}");
    ensure!(last.contains("was deleted while it was in use"), "{last}");
    Ok(())
}

/// The device goes down between a request and its response.
fn connect() -> Result<()> {
    namespace()?;
    Way::Packet.make()?;
    let server = TcpListener::bind((KERNEL, 7))?;
    let target = format!("{KERNEL}:7");
    let words = [
        &["stack", "connect", &target, "--json", "--timeout=60s"],
        &Way::Packet.arguments()[..],
    ]
    .concat();
    let mut client = Said::start(&words)?;
    let (mut stream, _) = server.accept()?;
    let mut request = [0; 64];
    stream.read_exact(&mut request)?;
    ip("link set near down")?;
    client.expect(&["is down"])?;
    stream.write_all(&request)?;
    ip("link set near up")?;
    client.expect(&["up again"])?;
    let mut out = String::new();
    let mut stdout = client.child.stdout.take().context("a pipe")?;
    stdout.read_to_string(&mut out)?;
    let status = client.child.wait()?;
    ensure!(status.success(), "{status}: {out}");
    let summary: Value = serde_json::from_str(out.trim())?;
    ensure!(
        summary["answered"] == 1 && summary["failed"] == 0,
        "{summary}"
    );
    ensure!(summary["engine"]["link"]["downs"] == 1, "{summary}");
    ensure!(summary["engine"]["link"]["is_up"] == true, "{summary}");
    Ok(())
}
