//! A command below `hopscope splice run`, and what the accelerator counted.
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::{Output, run as command};
use hopscope_tests::{Target, compile_c, hopscope_bin, scratch};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Command};
use std::sync::OnceLock;

pub(super) struct Done {
    pub output: Output,
    pub summary: Value,
}

/// Other tests' programs may be at the control groups above.
pub(super) const ANYWAY: &str = "--yes";

/// Every connection joins, however short, and whether or not its programs wait.
pub(super) const AT_ONCE: &str = "--blocking";

/// Runs a shell's script below `splice run`; connections join at once.
pub(super) fn splice(options: &[&str], script: &str, environment: &[(&str, &str)]) -> Result<Done> {
    splice_as_it_is(&[&[AT_ONCE], options].concat(), script, environment)
}

/// As `splice`, with Python's connections: its scripts might ask FIONREAD, and those of the tests do not.
pub(super) fn splice_python(
    options: &[&str],
    script: &str,
    environment: &[(&str, &str)],
) -> Result<Done> {
    splice(
        &[&["--allow", "python3"], options].concat(),
        script,
        environment,
    )
}

pub(super) fn splice_as_it_is(
    options: &[&str],
    script: &str,
    environment: &[(&str, &str)],
) -> Result<Done> {
    let summary = dir().join("summary");
    let mut run = Command::new(hopscope_bin());
    run.args(["-q", "splice", "run", ANYWAY, "--summary"])
        .arg(&summary)
        .args(options)
        .args(["--", "sh", "-c", script])
        .envs(environment.iter().copied());
    let output = command(&mut run)?;
    let text = std::fs::read_to_string(&summary).with_context(|| format!("{output:?}"))?;
    Ok(Done {
        summary: serde_json::from_str(&text)?,
        output,
    })
}

/// `splice attach` to the programs of this one at a free port, which it gives too; `prepare` adds what a test has of its own.
pub(super) fn attached(prepare: impl FnOnce(&mut Command)) -> Result<(Target, String)> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port().to_string();
    let ready = dir().join("ready");
    let _ = std::fs::remove_file(&ready);
    let group = std::process::id().to_string();
    let mut attach = Command::new(hopscope_bin());
    attach
        .args(["splice", "attach", ANYWAY, "--port", &port, "-p", &group])
        .arg("--ready-file")
        .arg(&ready);
    prepare(&mut attach);
    let attached = Target::spawn_with_ready_file(&mut attach, &ready)?;
    Ok((attached, port))
}

/// The child of an accelerator that keeps what it leaves.
pub(super) fn keeper(of: i32) -> Result<Pid> {
    let children = std::fs::read_to_string(format!("/proc/{of}/task/{of}/children"))?;
    for child in children.split_whitespace() {
        let words = std::fs::read_to_string(format!("/proc/{child}/cmdline"))?;
        if words.split('\0').any(|word| word == "__keep") {
            return Ok(Pid::from_raw(child.parse()?));
        }
    }
    anyhow::bail!("no keeper among {children}")
}

/// Another one keeps once this returns. What the accelerator goes on to say needs a reader.
pub(super) fn kill_keeper(of: &mut Target) -> Result<BufReader<ChildStderr>> {
    let stderr = of.child().stderr.take().context("stderr")?;
    let killed = keeper(of.pid())?;
    kill(killed, Signal::SIGKILL)?;
    let mut stderr = BufReader::new(stderr);
    let mut line = String::new();
    while !line.contains("takes its place") {
        line.clear();
        ensure!(stderr.read_line(&mut line)? > 0, "it ends");
    }
    ensure!(keeper(of.pid())? != killed, "{line}");
    Ok(stderr)
}

impl Done {
    pub(super) fn count(&self, name: &str) -> Result<u64> {
        let value = &self.summary[name];
        value
            .as_u64()
            .with_context(|| format!("{name}: {}", self.summary))
    }

    /// The line of JSON that the programs of `tests/programs/splice` say.
    pub(super) fn said(&self) -> Result<Value> {
        let line = self.output.stdout.lines().last();
        let line = line.with_context(|| format!("{:?}", self.output))?;
        serde_json::from_str(line).with_context(|| line.to_owned())
    }

    pub(super) fn expect_code(&self, code: i32) -> Result<()> {
        ensure!(self.output.code == Some(code), "{:?}", self.output);
        Ok(())
    }

    /// Each direction of each connection has one verdict, and none is a mismatch.
    pub(super) fn expect_verified(&self, bytes: u64) -> Result<()> {
        ensure!(
            self.count("verified_bytes")? == bytes
                && self.count("verified_directions")? == 2 * self.count("connections")?,
            "{bytes} bytes: {}",
            self.summary
        );
        Ok(())
    }

    /// The sum of all verdicts.
    pub(super) fn verdicts(&self) -> Result<u64> {
        let counts = self.summary.as_object().context("an object")?;
        let is_verdict = |name: &str| {
            name.starts_with("unverified_")
                || [
                    "verified_directions",
                    "verified_open",
                    "mismatched_directions",
                ]
                .contains(&name)
        };
        let verdicts = counts.iter().filter(|(name, _)| is_verdict(name));
        Ok(verdicts.filter_map(|(_, count)| count.as_u64()).sum())
    }

    /// Sockets that joined left, or are open: one whose last acknowledgement is on its way, though its
    /// program has ended. The reasons of messages that took TCP add up.
    pub(super) fn expect_adds_up(&self) -> Result<()> {
        let reasons = [
            "tcp_no_peer_yet",
            "tcp_pressure",
            "tcp_unread",
            "tcp_stopped",
            "tcp_peer_gone",
            "tcp_memory",
            "tcp_reader_options",
            "tcp_leaving",
            "tcp_shared",
        ];
        let sum: Result<u64> = reasons.iter().map(|name| self.count(name)).sum();
        ensure!(
            self.count("ends_joined")? == self.count("ends_left")? + self.count("ends_open")?
                && self.count("tcp_messages")? == sum?,
            "{}",
            self.summary
        );
        Ok(())
    }
}

/// This case's own, empty when the case begins.
pub(super) fn dir() -> &'static Path {
    static DIR: OnceLock<PathBuf> = OnceLock::new();
    DIR.get_or_init(scratch)
}

pub(super) fn program(name: &str) -> Result<PathBuf> {
    compile_c(&[&format!("splice/{name}.c")], &["-O2", "-Wall"])
}

pub(super) fn text(path: &Path) -> Result<&str> {
    path.to_str().context("a path in UTF-8")
}
