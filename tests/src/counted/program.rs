//! The program whose counts are known, and what a report says of them.
use crate::recording::Recording;
use crate::told::Told;
use anyhow::{Context, Result, ensure};
use hopscope_tests::{compile_c, hopscope, hopscope_bin};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

pub(super) const WATCHDOG: Duration = Duration::from_secs(60);

pub(super) struct Program {
    told: Told,
    preload: Option<PathBuf>,
}

/// What answers `rdpmc`.
pub(crate) fn emulator() -> Result<PathBuf> {
    let flags = ["-O2", "-shared", "-fPIC", "-ftls-model=initial-exec"];
    compile_c(&["counted/rdpmc.c"], &flags)
}

impl Program {
    pub(super) fn start() -> Result<Program> {
        Program::with(None)
    }

    pub(super) fn emulating() -> Result<Program> {
        Program::with(Some(emulator()?))
    }

    fn with(preload: Option<PathBuf>) -> Result<Program> {
        let program = compile_c(&["counted/counts.c"], &["-O2", "-g", "-pthread"])?;
        let mut command = Command::new(program);
        if let Some(library) = &preload {
            command.env("LD_PRELOAD", library);
        }
        let told = Told::start(&mut command)?;
        Ok(Program { told, preload })
    }

    pub(super) fn pid(&self) -> i32 {
        self.told.pid()
    }

    pub(super) fn told(&mut self, what: &str) -> Result<String> {
        self.told.told(what)
    }

    pub(super) fn becomes(&mut self, name: &str) -> Result<()> {
        self.told.tell("exec")?;
        let comm = format!("/proc/{}/comm", self.pid());
        let began = Instant::now();
        while std::fs::read_to_string(&comm)?.trim() != name {
            ensure!(began.elapsed() < WATCHDOG, "it did not become {name}");
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Calibrated: what the probes count of themselves is known.
    pub(super) fn command(&self, functions: &[&str], file: &Path) -> Command {
        let mut command = Command::new(hopscope_bin());
        command.args(["record", "-p", &self.pid().to_string(), "--json"]);
        command
            .args(["--max-overhead", "1e9", "--buffer", "64M", "-o"])
            .arg(file);
        for function in functions {
            command.args(["-f", function]);
        }
        if let Some(library) = &self.preload {
            command.arg("--emulate-counters").env("LD_PRELOAD", library);
        }
        command
    }

    pub(super) fn record_calibrated(&self, functions: &[&str], file: &Path) -> Result<Recording> {
        Recording::start_command(self.command(functions, file), file)
    }

    /// With raw counts alone.
    pub(super) fn record(&self, functions: &[&str], file: &Path) -> Result<Recording> {
        let mut command = self.command(functions, file);
        command.arg("--no-calibration");
        Recording::start_command(command, file)
    }

    /// Nothing of ours is left in it, and no event of anybody's.
    pub(super) fn expect_clean(&self) -> Result<()> {
        self.told.expect_clean()?;
        ensure!(events(self.pid())? == 0, "events are left");
        let open = self.descriptors()?;
        ensure!(open.is_empty(), "descriptors are left: {open:?}");
        Ok(())
    }

    /// That it did not open itself.
    pub(super) fn descriptors(&self) -> Result<Vec<String>> {
        let open = std::fs::read_dir(format!("/proc/{}/fd", self.pid()))?;
        let open = open.filter_map(|e| std::fs::read_link(e.ok()?.path()).ok());
        let open = open.map(|to| to.to_string_lossy().into_owned());
        let ours = open.filter(|to| {
            to.starts_with("socket:") || to.contains("perf_event") || to.contains("hopscope-")
        });
        Ok(ours.collect())
    }
}

/// Pages of events that a process has mapped.
pub(super) fn events(pid: i32) -> Result<usize> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps"))?;
    Ok(maps.matches("anon_inode:[perf_event]").count())
}

/// Lines of `report --json`.
pub(crate) struct Rows(Vec<Value>);

pub(crate) fn rows(file: &Path) -> Result<Rows> {
    let path = file.to_str().context("a path")?;
    let out = hopscope(&["report", path, "--json"])?.expect_code(0)?;
    let rows = out.stdout.lines().map(serde_json::from_str);
    Ok(Rows(rows.collect::<Result<_, _>>()?))
}

impl Rows {
    pub(crate) fn row(&self, function: &str) -> Result<Row> {
        let is_it = |row: &&Value| {
            let name = row["function"].as_str().unwrap_or_default();
            name.rsplit('!').next() == Some(function)
        };
        let row = self.0.iter().find(is_it);
        Ok(Row(row.with_context(|| format!("no {function}"))?.clone()))
    }
}

pub(crate) struct Row(Value);

impl Row {
    pub(crate) fn counter(&self, name: &str) -> Result<Counted> {
        let counters = self.0["counters"].as_array().context("counters")?;
        let counted = counters.iter().find(|c| c["name"] == name);
        Ok(Counted(
            counted
                .with_context(|| format!("no {name} in {}", self.0))?
                .clone(),
        ))
    }
}

#[derive(Debug)]
pub(crate) struct Counted(Value);

impl Counted {
    pub(crate) fn number(&self, field: &str) -> Result<i64> {
        let number = self.0[field].as_i64();
        number.with_context(|| format!("{field} in {}", self.0))
    }

    /// Calls left out of everything for this reason, or of own counts.
    pub(crate) fn left_out(&self, why: &str) -> i64 {
        self.0["left_out"][why].as_i64().unwrap_or(0)
    }

    /// `total` and `own` of so many calls, with `kind` behind their names, and none left out.
    pub(super) fn expect(&self, kind: &str, calls: i64, [total, own]: [i64; 2]) -> Result<()> {
        let number = |field: &str| self.number(field);
        ensure!(
            number("calls")? == calls
                && number("self_calls")? == calls
                && number(&format!("total{kind}"))? == total
                && number(&format!("self{kind}"))? == own,
            "{calls} calls, total {total}, own {own}: {}",
            self.0
        );
        Ok(())
    }
}
