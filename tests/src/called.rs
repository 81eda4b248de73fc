//! A program whose one function is called exactly as often as it is told to.
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Target, compile};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

pub(crate) const CALLS: u64 = 1000;

/// A program that answers each line of its stdin with one of stdout.
pub(crate) struct Conversation {
    pub process: Target,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Conversation {
    pub(crate) fn start(command: &mut Command) -> Result<Conversation> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = Target::spawn_now(command)?;
        let child = process.child();
        let (to, from) = (child.stdin.take(), child.stdout.take());
        Ok(Conversation {
            process,
            to,
            from: BufReader::new(from.context("was piped")?),
        })
    }

    pub(crate) fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.from.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }

    pub(crate) fn tell(&mut self, line: &str) -> Result<()> {
        let to = self.to.as_mut().context("still open")?;
        Ok(writeln!(to, "{line}")?)
    }

    pub(crate) fn call(&mut self) -> Result<()> {
        self.tell(&CALLS.to_string())?;
        let answer = self.line()?;
        ensure!(answer == format!("{CALLS} right"), "it says {answer:?}");
        Ok(())
    }

    /// Closes its stdin and waits for its end.
    pub(crate) fn end(mut self) -> Result<()> {
        drop(self.to.take());
        let status = self.process.wait()?;
        ensure!(status.success(), "{status}");
        Ok(())
    }
}

/// The program; its function is `work`.
pub(crate) fn build(compiler: &str, flags: &[&str]) -> Result<PathBuf> {
    let flags: Vec<&str> = ["-O0", "-fcf-protection=none"]
        .iter()
        .chain(flags)
        .copied()
        .collect();
    compile(compiler, &["called.c"], &flags)
}

/// It runs, and where its function lies.
pub(crate) struct Called {
    pub program: Conversation,
    pub file: PathBuf,
    pub offset: u64,
    pub original: [u8; 5],
    address: u64,
}

impl Called {
    pub(crate) fn start(arguments: &[&str]) -> Result<Called> {
        let file = build("gcc", &[])?;
        let mut program = Conversation::start(Command::new(&file).args(arguments))?;
        let place = program.line()?;
        let (offset, address) = place.split_once(' ').context("offset and address")?;
        let mut called = Called {
            program,
            file,
            offset: offset.parse()?,
            address: address.parse()?,
            original: [0; 5],
        };
        called.original = called.bytes()?;
        Ok(called)
    }

    pub(crate) fn pid(&self) -> i32 {
        self.program.process.pid()
    }

    /// Of its entry.
    pub(crate) fn bytes(&self) -> Result<[u8; 5]> {
        let mut bytes = [0; 5];
        let memory = std::fs::File::open(format!("/proc/{}/mem", self.pid()))?;
        memory.read_exact_at(&mut bytes, self.address)?;
        Ok(bytes)
    }
}
