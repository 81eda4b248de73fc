use super::build::Program;
use crate::error::{Error, Result};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A running bench program. Dropping it ends the process.
#[derive(Debug)]
pub struct Target {
    child: Child,
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    /// Of the program itself, which is not `child` when a tool starts it.
    pub pid: i32,
    pub cpu: i32,
    pub tsc_hz: f64,
    /// Calls of measured functions so far, warm-up included.
    pub calls: u64,
}

/// What one phase took, in ticks per call (per round for floors).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phase {
    pub calls_per_batch: u64,
    pub batches: u64,
    pub min: f64,
    pub p10: f64,
    pub median: f64,
    pub p90: f64,
    pub calls: u64,
}

/// What a paced run did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Paced {
    pub calls: u64,
    pub wall_ns: u64,
    /// Bursts that took longer than their share of time.
    pub behind: u64,
}

impl Target {
    pub fn start(program: &Program) -> Result<Target> {
        Target::start_under(Command::new(&program.executable), &program.executable)
    }

    /// Starts `command`, which must end in running the bench program with its own stdin and stdout.
    pub fn start_under(mut command: Command, program: &Path) -> Result<Target> {
        let name = command.get_program().to_string_lossy().into_owned();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(Error::start(name))?;
        let (Some(commands), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            unreachable!("both were asked for as pipes")
        };
        let mut target = Target {
            child,
            commands: Some(commands),
            answers: BufReader::new(answers),
            pid: 0,
            cpu: -1,
            tsc_hz: 0.0,
            calls: 0,
        };
        let asked = format!("(start of {})", program.display());
        let hello = target.answer()?;
        let mut words = hello.split_whitespace();
        let parsed = (|| {
            (words.next()? == "ready").then_some(())?;
            Some((
                words.next()?.parse().ok()?,
                words.next()?.parse().ok()?,
                words.next()?.parse().ok()?,
            ))
        })();
        let Some((pid, cpu, tsc_hz)) = parsed else {
            return Err(Error::Answer {
                asked,
                answer: hello,
            });
        };
        (target.pid, target.cpu, target.tsc_hz) = (pid, cpu, tsc_hz);
        Ok(target)
    }

    /// An error if the program has ended: it never does so by itself.
    pub fn check_alive(&mut self) -> Result<()> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(Error::failed(
                "the bench program, while it was measured,",
                status,
                "",
            )),
            Err(source) => Err(Error::file("wait for", "the bench program")(source)),
        }
    }

    fn answer(&mut self) -> Result<String> {
        let mut line = String::new();
        self.answers
            .read_line(&mut line)
            .map_err(Error::file("read from", "the bench program"))?;
        Ok(line.trim_end().to_string())
    }

    /// One line there, one line back.
    fn ask(&mut self, asked: String) -> Result<(String, Vec<f64>)> {
        let Some(commands) = &mut self.commands else {
            unreachable!("closed only when dropped")
        };
        writeln!(commands, "{asked}")
            .and_then(|()| commands.flush())
            .map_err(Error::file("write to", "the bench program"))?;
        let answer = self.answer()?;
        let mut words = answer.split_whitespace();
        let first = words.next().unwrap_or_default().to_string();
        match words.map(|w| w.parse().ok()).collect::<Option<Vec<f64>>>() {
            Some(numbers) if first != "error" => Ok((first, numbers)),
            _ => Err(Error::Answer { asked, answer }),
        }
    }

    fn refused(asked: &str, numbers: &[f64]) -> Error {
        Error::Answer {
            asked: asked.to_string(),
            answer: format!("{numbers:?}"),
        }
    }

    /// Runs a phase for about `milliseconds`.
    pub fn run(&mut self, phase: &str, milliseconds: u64) -> Result<Phase> {
        let (_, numbers) = self.ask(format!("run {phase} {milliseconds}"))?;
        let &[per_batch, batches, min, p10, median, p90, calls] = numbers.as_slice() else {
            return Err(Target::refused(phase, &numbers));
        };
        if !phase.starts_with("floor") {
            self.calls += calls as u64;
        }
        Ok(Phase {
            calls_per_batch: per_batch as u64,
            batches: batches as u64,
            min,
            p10,
            median,
            p90,
            calls: calls as u64,
        })
    }

    /// Runs a phase at a steady rate.
    pub fn pace(&mut self, phase: &str, per_second: f64, milliseconds: u64) -> Result<Paced> {
        let (_, numbers) = self.ask(format!("pace {phase} {per_second:.0} {milliseconds}"))?;
        let &[calls, wall_ns, behind] = numbers.as_slice() else {
            return Err(Target::refused(phase, &numbers));
        };
        self.calls += calls as u64;
        Ok(Paced {
            calls: calls as u64,
            wall_ns: wall_ns as u64,
            behind: behind as u64,
        })
    }

    /// Starts threads that call the smallest functions for ever, or a round each millisecond.
    pub fn threads(&mut self, spinning: usize, sleeping: usize) -> Result<()> {
        self.ask(format!("threads {spinning} {sleeping}")).map(drop)
    }

    /// The main thread calls the smallest functions for ever, and watches the clock.
    pub fn watch(&mut self) -> Result<()> {
        self.ask("watch".into()).map(drop)
    }

    /// The longest time, in ns, that the watching thread missed since this was last asked.
    pub fn longest_gap_ns(&mut self) -> Result<f64> {
        let (_, numbers) = self.ask("gap".into())?;
        let refused = || Target::refused("gap", &numbers);
        numbers.first().copied().ok_or_else(refused)
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // End of input ends the program. A tool that started it sees an orderly end; our own
        // child may be in the middle of a phase and is not waited for.
        drop(self.commands.take());
        if self.pid == 0 || self.pid as u32 == self.child.id() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}
