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
}

impl Report {
    pub(super) fn create(path: &Path) -> std::io::Result<Report> {
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir)?;
        }
        let mut file = std::fs::File::create(path)?;
        writeln!(file, "proof\toutcome\tseconds\treason")?;
        Ok(Report {
            file,
            passed: 0,
            skipped: 0,
            failed: Vec::new(),
        })
    }

    pub(super) fn add(&mut self, name: &str, outcome: &Outcome, seconds: f64) {
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
                self.failed.push(name.to_string());
                println!("FAIL  {name} ({seconds:.1} s)");
                for line in reason.lines() {
                    println!("      {line}");
                }
                ("failed", reason.lines().next().unwrap_or(""))
            }
        };
        let reason = reason.replace('\t', " ");
        if let Err(error) = writeln!(self.file, "{name}\t{word}\t{seconds:.3}\t{reason}") {
            self.failed.push(format!("the report itself: {error}"));
        }
    }

    pub(super) fn finish(self) -> ExitCode {
        for name in &self.failed {
            println!("failed: {name}");
        }
        println!(
            "proofs: {} passed, {} failed, {} skipped",
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
