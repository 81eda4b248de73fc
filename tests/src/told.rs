//! A program that does what it is told, a line each, and answers each with a line.
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Target, mapped};
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

pub(crate) struct Told {
    pub(crate) target: Target,
    stdin: ChildStdin,
    said: Lines<BufReader<ChildStdout>>,
}

impl Told {
    pub(crate) fn start(program: &mut Command) -> Result<Told> {
        program.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut target = Target::spawn(program)?;
        let child = target.child();
        let stdin = child.stdin.take().context("stdin")?;
        let said = BufReader::new(child.stdout.take().context("stdout")?).lines();
        Ok(Told {
            target,
            stdin,
            said,
        })
    }

    pub(crate) fn pid(&self) -> i32 {
        self.target.pid()
    }

    pub(crate) fn tell(&mut self, what: &str) -> Result<()> {
        Ok(writeln!(self.stdin, "{what}")?)
    }

    /// What it answers.
    pub(crate) fn told(&mut self, what: &str) -> Result<String> {
        self.tell(what)?;
        self.line()
    }

    pub(crate) fn line(&mut self) -> Result<String> {
        Ok(self.said.next().context("it ended")??)
    }

    /// Nothing of ours is mapped in it.
    pub(crate) fn expect_clean(&self) -> Result<()> {
        let ours = mapped::mapped(self.pid())?;
        ensure!(ours.is_empty(), "{ours:?}");
        Ok(())
    }
}
