//! The program whose values are known.
use anyhow::{Context, Result, bail};
use hopscope_tests::{Target, compile};
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

pub(super) struct Program {
    target: Target,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// Calls made so far by the program itself and by its signal handler; and what it found wrong.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) own: u64,
    pub(super) failures: u64,
}

impl Program {
    pub(super) fn start(level: &str, mode: &str) -> Result<Program> {
        let program = compile("gcc", &["captured/batches.c"], &[level, "-g"])?;
        let mut command = Command::new(program);
        command
            .arg(mode)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut target = Target::spawn(&mut command)?;
        let input = target.child().stdin.take().context("its input")?;
        let output = target.child().stdout.take().context("its output")?;
        let output = BufReader::new(output);
        Ok(Program {
            target,
            input,
            output,
        })
    }

    pub(super) fn pid(&self) -> i32 {
        self.target.pid()
    }

    pub(super) fn command(&mut self, command: &str) -> Result<Done> {
        self.send(command)?;
        self.answer()
    }

    pub(super) fn send(&mut self, command: &str) -> Result<()> {
        writeln!(self.input, "{command}").context("the program is gone")
    }

    pub(super) fn answer(&mut self) -> Result<Done> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            bail!("the program ended: {}", self.target.child().wait()?);
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let number =
            |n: usize| -> Result<u64> { Ok(words.get(n).context("a short answer")?.parse()?) };
        Ok(Done {
            own: number(1)?,
            failures: number(3)?,
        })
    }
}
