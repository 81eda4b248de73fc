//! What ran: a line each on stdout, a row each in `target/test-report.tsv`, a closing line.
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

pub(super) enum Outcome {
    Passed,
    Skipped(String),
    Failed(String),
}

pub(super) struct Report {
    file: std::fs::File,
    passed: usize,
    skipped: usize,
    failed: Vec<String>,
    /// For a later run.
    left: usize,
}

/// Cases that passed, or had to be skipped, in a run with this report; none where there is no such file.
pub(super) fn passed_in(path: &Path) -> std::io::Result<Vec<String>> {
    let text = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text?,
    };
    let rows = text.lines().filter_map(|line| {
        let mut fields = line.split('\t');
        let (name, outcome) = (fields.next()?, fields.next()?);
        matches!(outcome, "passed" | "skipped").then(|| name.to_owned())
    });
    Ok(rows.collect())
}

impl Report {
    pub(super) fn create(path: &Path) -> std::io::Result<Report> {
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir)?;
        }
        let mut file = std::fs::File::create(path)?;
        writeln!(file, "test\toutcome\tseconds\tcpu_seconds\treason")?;
        Ok(Report::of(file))
    }

    /// Behind the rows that are there.
    pub(super) fn append(path: &Path) -> std::io::Result<Report> {
        match path.exists() {
            true => Ok(Report::of(
                std::fs::File::options().append(true).open(path)?,
            )),
            false => Report::create(path),
        }
    }

    fn of(file: std::fs::File) -> Report {
        Report {
            file,
            passed: 0,
            skipped: 0,
            failed: Vec::new(),
            left: 0,
        }
    }

    pub(super) fn leave(&mut self, name: &str) {
        self.left += 1;
        println!("left  {name}");
    }

    pub(super) fn add(
        &mut self,
        name: &str,
        outcome: &Outcome,
        seconds: f64,
        cpu_seconds: Option<f64>,
    ) {
        let (word, reason) = match outcome {
            Outcome::Passed => {
                self.passed += 1;
                println!("ok    {name} ({seconds:.1} s)");
                ("passed", "")
            }
            Outcome::Skipped(reason) => {
                self.skipped += 1;
                println!("SKIP  {name}: {reason}");
                ("skipped", reason.as_str())
            }
            Outcome::Failed(reason) => {
                // Why it gave up is the last that it said.
                let last = reason.trim_end().lines().last().unwrap_or_default();
                self.failed.push(format!("{name}: {last}"));
                println!("FAIL  {name} ({seconds:.1} s)");
                for line in reason.lines() {
                    println!("      {line}");
                }
                ("failed", reason.lines().next().unwrap_or(""))
            }
        };
        let reason = reason.replace('\t', " ");
        let cpu = cpu_seconds.map_or(String::new(), |s| format!("{s:.3}"));
        if let Err(error) = writeln!(self.file, "{name}\t{word}\t{seconds:.3}\t{cpu}\t{reason}") {
            self.failed.push(format!("the report itself: {error}"));
        }
    }

    pub(super) fn finish(self) -> ExitCode {
        for one in &self.failed {
            println!("failed: {one}");
        }
        if self.left > 0 {
            println!("left for a later run: {}", self.left);
        }
        println!(
            "system: {} passed, {} failed, {} skipped",
            self.passed,
            self.failed.len(),
            self.skipped
        );
        match self.failed.is_empty() {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        }
    }
}
