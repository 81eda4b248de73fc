//! `bench compare`: any two commands side by side, by wall time or by a number that they print.
use crate::comparison::{Comparison, TEST, Verdict};
use crate::error::{Error, Result, last_words};
use crate::host::Host;
use crate::interleave::{Side, interleave};
use crate::output::{Output, Summary, with};
use serde_json::{Value, json};
use std::fmt::Write;
use std::process::{Command, Stdio};
use std::time::Instant;

#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// Given to `sh -c`.
    pub a: String,
    pub b: String,
    pub rounds: usize,
    /// Runs of each before anything is measured.
    pub warm_up: usize,
    pub metric: Metric,
    pub expected: Expected,
    /// No progress on stderr.
    pub quiet: bool,
}

/// What the exit code is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Any verdict will do.
    Any,
    NoDifference,
    Higher,
    Lower,
    NotHigher,
    NotLower,
}

impl Expected {
    fn holds(self, verdict: Verdict) -> bool {
        match self {
            Expected::Any => true,
            Expected::NoDifference => verdict == Verdict::NoDifference,
            Expected::Higher => verdict == Verdict::Higher,
            Expected::Lower => verdict == Verdict::Lower,
            Expected::NotHigher => verdict != Verdict::Higher,
            Expected::NotLower => verdict != Verdict::Lower,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Metric {
    /// Seconds from start to end.
    Wall,
    /// A number in the last line of stdout, which is a JSON object; `.` leads into objects.
    Field(String),
}

impl Metric {
    fn name(&self) -> &str {
        match self {
            Metric::Wall => "wall",
            Metric::Field(path) => path,
        }
    }

    fn unit(&self) -> &'static str {
        match self {
            Metric::Wall => "s",
            Metric::Field(_) => "as printed",
        }
    }
}

impl Compared {
    fn say(&self, what: &str) {
        if !self.quiet {
            eprintln!("bench: {what}");
        }
    }

    fn command(&self, side: Side) -> &str {
        match side {
            Side::A | Side::Control => &self.a,
            Side::B => &self.b,
        }
    }

    fn run(&self, side: Side) -> Result<f64> {
        let line = self.command(side);
        let mut command = Command::new("sh");
        command.args(["-c", line]).stdin(Stdio::null());
        let start = Instant::now();
        let done = command.output().map_err(|source| Error::Start {
            program: "sh",
            source,
        })?;
        let wall_s = start.elapsed().as_secs_f64();
        if !done.status.success() {
            return Err(Error::Failed {
                program: line.into(),
                status: done.status.to_string(),
                stderr: last_words(&String::from_utf8_lossy(&done.stderr)),
            });
        }
        match &self.metric {
            Metric::Wall => Ok(wall_s),
            Metric::Field(path) => number(path, &String::from_utf8_lossy(&done.stdout), line),
        }
    }
}

fn number(path: &str, stdout: &str, program: &str) -> Result<f64> {
    let line = stdout.trim_end().lines().last().unwrap_or_default();
    let parsed: Option<Value> = serde_json::from_str(line).ok();
    parsed
        .as_ref()
        .and_then(|object| path.split('.').try_fold(object, |at, name| at.get(name)))
        .and_then(Value::as_f64)
        .ok_or_else(|| Error::no_field(program, path, line))
}

/// True when the verdict is one that was expected.
pub fn run(compared: &Compared, mut output: Output<'_>) -> Result<bool> {
    let host = Host::look(None);
    for n in 0..compared.warm_up {
        compared.say(&format!("warming up, {} of {}", n + 1, compared.warm_up));
        compared.run(Side::A)?;
        compared.run(Side::B)?;
    }
    let mut last = usize::MAX;
    let runs = interleave(compared.rounds, |round, side| {
        if last != round {
            compared.say(&format!("round {} of {}", round + 1, compared.rounds));
            last = round;
        }
        let value = compared.run(side)?;
        let name = compared.metric.name();
        output.sample(json!({"round": round, "side": side, "metric": name, "value": value}))?;
        Ok::<_, Error>(value)
    })?;
    let comparison = Comparison::of(&runs)?;
    output.summary(&host, summarise(compared, &comparison))?;
    Ok(compared.expected.holds(comparison.verdict))
}

fn summarise(compared: &Compared, comparison: &Comparison) -> Summary {
    let metric = compared.metric.name();
    let fields = json!({
        "command_a": compared.a, "command_b": compared.b, "metric": metric, "test": TEST,
    });
    let mut table = format!(
        "A: {}\nB: {}\n\n{:<4} {:>12} {:>12} {:>12} {:>12} {:>12}   {metric}, {}\n",
        compared.a,
        compared.b,
        "",
        "median",
        "p10",
        "p90",
        "min",
        "max",
        compared.metric.unit()
    );
    for (name, s) in [("A", comparison.a), ("B", comparison.b)] {
        let _ = writeln!(
            table,
            "{name:<4} {:>12.6} {:>12.6} {:>12.6} {:>12.6} {:>12.6}",
            s.median, s.p10, s.p90, s.min, s.max
        );
    }
    let _ = writeln!(table, "\n{comparison}");
    Summary {
        unit: json!({metric: compared.metric.unit(), "ratio": "B/A", "control_ratio": "A/A"}),
        fields: with(fields, json!(comparison)),
        table,
        complete: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_path_in_the_last_line() {
        let printed = "{\"a\":{\"b\":1}}\n{\"a\":{\"b\":2.5}}\n\n";
        assert_eq!(number("a.b", printed, "x").unwrap(), 2.5);
        for (path, printed) in [
            ("a.c", printed),
            ("a", printed),
            ("a.b", "words\n"),
            ("a", ""),
        ] {
            let error = number(path, printed, "x").unwrap_err().to_string();
            assert!(error.contains(path), "{error}");
        }
    }
}
