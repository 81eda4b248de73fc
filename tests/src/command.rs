//! Running the tool and looking at what it said.
use anyhow::{Context, Result, ensure};
use std::process::{Command, Stdio};

#[derive(Debug)]
pub struct Output {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// `hopscope ARGUMENTS`, to its end.
///
/// # Errors
/// When the binary cannot be started.
pub fn hopscope(arguments: &[&str]) -> Result<Output> {
    run(Command::new(crate::hopscope_bin()).args(arguments))
}

/// # Errors
/// When the program cannot be started.
pub fn run(command: &mut Command) -> Result<Output> {
    let out = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("starting {:?}", command.get_program()))?;
    Ok(Output {
        code: out.status.code(),
        stdout: String::from_utf8_lossy(&out.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&out.stderr).into_owned(),
    })
}

impl Output {
    /// # Errors
    /// When the exit code is another; with everything the program said.
    pub fn expect_code(self, code: i32) -> Result<Output> {
        ensure!(
            self.code == Some(code),
            "exit code {:?} instead of {code}\nstdout: {}\nstderr: {}",
            self.code,
            self.stdout,
            self.stderr
        );
        Ok(self)
    }

    /// The rule for every refusal: code 2, nothing on stdout, exactly one line on stderr that
    /// holds all of `words`.
    ///
    /// # Errors
    /// What of this did not hold.
    pub fn expect_refusal(self, words: &[&str]) -> Result<()> {
        let out = self.expect_code(2)?;
        ensure!(out.stdout.is_empty(), "stdout is not empty: {}", out.stdout);
        let lines: Vec<&str> = out.stderr.lines().collect();
        ensure!(
            lines.len() == 1 && lines[0].starts_with("hopscope: "),
            "not one line of hopscope's: {}",
            out.stderr
        );
        for word in words {
            ensure!(lines[0].contains(word), "no `{word}` in: {}", lines[0]);
        }
        Ok(())
    }
}
