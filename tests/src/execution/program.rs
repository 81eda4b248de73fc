//! The two programs, and what they answer.
use anyhow::{Context, Result, bail};
use hopscope_tests::{Target, compile};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

pub(super) struct Program {
    target: Target,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Program {
    pub(super) fn start_bodies(generated: &Path) -> Result<Program> {
        let generated = generated.to_str().context("path")?;
        let sources = ["execution/bodies.c", "execution/trampoline.S", generated];
        Program::start(&sources, &["-O1"])
    }

    pub(super) fn start_library() -> Result<Program> {
        let libraries = ["-lm", "-l:libz.so.1", "-l:libcrypto.so.3"];
        let flags: Vec<&str> = ["-O1", "-fno-builtin"]
            .into_iter()
            .chain(libraries)
            .collect();
        Program::start(
            &["execution/library.c", "execution/library_crypto.c"],
            &flags,
        )
    }

    fn start(sources: &[&str], flags: &[&str]) -> Result<Program> {
        let headers = crate::headers("execution")?;
        let flags: Vec<&str> = flags.iter().copied().chain([headers.as_str()]).collect();
        let program = compile("gcc", sources, &flags)?;
        let mut command = Command::new(program);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut target = Target::spawn(&mut command)?;
        let input = target.child().stdin.take().context("its input")?;
        let output = target.child().stdout.take().context("its output")?;
        Ok(Program {
            target,
            input,
            output: BufReader::new(output),
        })
    }

    pub(super) fn pid(&self) -> i32 {
        self.target.pid()
    }

    /// A line of name and hash for each function.
    pub(super) fn run(&mut self, seed: u64, rounds: u64) -> Result<Vec<String>> {
        writeln!(self.input, "run {seed} {rounds}").context("the program is gone")?;
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line)? == 0 {
                let status = self.target.child().wait()?;
                bail!(
                    "the program ended: {status}; the last it said: {:?}",
                    lines.last()
                );
            }
            match line.trim_end() {
                "end" => return Ok(lines),
                other => lines.push(other.to_owned()),
            }
        }
    }
}
