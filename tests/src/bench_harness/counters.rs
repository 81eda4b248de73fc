//! `bench counters` from outside. Where there is no PMU, what reads its counters is examined with a library that answers
//! `rdpmc`; what that takes is not looked at.
use super::size;
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, command, compile_c, counts, hopscope_bin, scratch};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const NEEDS: [Requirement; 2] = [Requirement::Root, Requirement::Gcc];
/// As many as the program's own work has, and no counter more.
const COUNTED_RIGHT: &str = "100000";

pub(super) fn register(suite: &mut Suite) {
    suite
        .case("bench_harness::counters_gives_its_figures", &NEEDS, figures)
        .in_turn();
    suite.case(
        "bench_harness::counters_of_a_processor",
        &NEEDS,
        of_a_processor,
    );
    suite.case("bench_harness::counters_without_papi", &NEEDS, without_papi);
}

struct Found {
    samples: Vec<Value>,
    summary: Value,
}

/// Exit code 1 tells that something is missing, and only that.
fn bench(dir: &Path, change: impl FnOnce(&mut Command)) -> Result<Found> {
    let mut command = Command::new(hopscope_bin());
    command.args(["-q", "bench", "counters", size(), "--json", "--build-dir"]);
    change(command.arg(dir));
    let out = command::run(&mut command)?;
    let lines = out.stdout.lines().map(serde_json::from_str);
    let mut samples: Vec<Value> = lines.collect::<Result<_, _>>()?;
    let summary = samples.pop().with_context(|| out.stderr.clone())?;
    let missing = summary["not_measured"].as_array().context("not_measured")?;
    ensure!(
        out.code == Some(i32::from(!missing.is_empty())),
        "exit code {:?}\n{summary}\n{}",
        out.code,
        out.stderr
    );
    Ok(Found { samples, summary })
}

impl Found {
    fn row(&self, way: &str, event: &str) -> Option<&Value> {
        let mut rows = self.summary["rows"].as_array()?.iter();
        rows.find(|row| row["way"] == way && row["event"] == event)
    }

    fn reason(&self, what: &str) -> Option<&str> {
        let mut missing = self.summary["not_measured"].as_array()?.iter();
        missing.find(|m| m["what"] == what)?["reason"].as_str()
    }

    /// Figures of windows in turn, of a way that read what was there.
    fn expect(&self, way: &str, event: &str) -> Result<()> {
        let summary = &self.summary;
        let row = self.row(way, event);
        let row = row.with_context(|| format!("no {way} of {event}: {summary}"))?;
        let rounds = counts().pick(2, 9);
        for figure in [&row["ticks"], &row["vs_read"]] {
            ensure!(figure["n"] == rounds, "{row}");
            // Of windows this short the bare loop may take longer than the one that reads.
            for quantile in ["median", "p10", "p90"] {
                ensure!(figure[quantile].is_number(), "no {quantile}: {row}");
            }
        }
        ensure!(way != "read" || row["vs_read"]["median"] == 1.0, "{row}");
        let examined = summary["examined"].as_array().context("examined")?;
        let of_this = |e: &&Value| e["way"] == way && e["event"] == event;
        let examined = examined.iter().find(of_this).context("not examined")?;
        ensure!(
            examined["grew"].as_u64() >= examined["at_least"].as_u64(),
            "{examined}"
        );
        Ok(())
    }

    /// Each round has every way once, and begins with the next one.
    fn expect_turns(&self) -> Result<()> {
        let names: Vec<String> = self
            .samples
            .iter()
            .map(|s| format!("{} {}", s["way"], s["event"]))
            .collect();
        let rounds: Vec<&Value> = self.samples.iter().map(|s| &s["round"]).collect();
        let ways = rounds.iter().filter(|round| **round == 0).count();
        let (first, second) = (&names[..ways], &names[ways..2 * ways]);
        ensure!(
            [&second[ways - 1..], &second[..ways - 1]].concat() == *first,
            "{names:?}"
        );
        ensure!(rounds[ways..2 * ways].iter().all(|round| **round == 1));
        Ok(())
    }
}

fn figures() -> Result<()> {
    let found = bench(&scratch(), |_| ())?;
    found.expect_turns()?;
    let summary = &found.summary;
    for field in ["core_cycles_per_tick", "page_vs_read"] {
        ensure!(summary[field].is_number(), "no {field}: {summary}");
    }
    found.expect("page", "context-switches")?;
    found.expect("read", "context-switches")?;
    if Path::new("/usr/include/papi.h").exists() {
        through_papi(&found)?;
    }
    if Requirement::Pmu.check().is_ok() {
        return found.expect("rdpmc", "instructions");
    }
    for what in ["rdpmc of instructions", "read of instructions"] {
        let reason = found.reason(what).context("no reason")?;
        ensure!(reason.starts_with("perf_event_open: "), "{what}: {reason}");
    }
    let goals = summary["goals"].as_array().context("goals")?;
    ensure!(
        goals.iter().all(|g| g["measured"].is_null()),
        "of what is not there: {goals:?}"
    );
    Ok(())
}

/// A PAPI that is older than the processor reads no event of the kernel's, and what it says of that is passed on.
fn through_papi(found: &Found) -> Result<()> {
    let asks = compile_c(&["bench/papi_disabled.c"], &["-O2", "-lpapi"])?;
    let disabled = command::run(&mut Command::new(asks))?
        .expect_code(0)?
        .stdout;
    if disabled.is_empty() {
        return found.expect("papi", "context-switches");
    }
    let reason = found.reason("papi of context-switches");
    let reason = reason.context("no reason")?;
    ensure!(reason.ends_with(&disabled), "{reason}, not {disabled}");
    Ok(())
}

/// One whose readings are right, and one whose are not.
fn of_a_processor() -> Result<()> {
    let flags = ["-O2", "-shared", "-fPIC", "-ldl"];
    let library = compile_c(&["bench/pmu.c"], &flags)?;
    let dir = scratch();
    let counting = |each: &str| {
        bench(&dir, |command| {
            command.env("LD_PRELOAD", &library);
            command.env("COUNTED_EACH", each);
        })
    };
    let found = counting(COUNTED_RIGHT)?;
    found.expect("rdpmc", "instructions")?;
    found.expect("read", "instructions")?;
    let summary = &found.summary;
    let goals = summary["goals"].as_array().context("goals")?;
    ensure!(goals.len() == 2, "{goals:?}");
    for goal in goals {
        ensure!(goal["measured"].is_number(), "{goal}");
    }
    let found = counting("1")?;
    for way in ["rdpmc", "read"] {
        ensure!(found.row(way, "instructions").is_none(), "{way} is timed");
        let reason = found.reason(&format!("{way} of instructions"));
        let reason = reason.context("no reason")?;
        ensure!(reason.starts_with("it counted 1 where 100000"), "{reason}");
    }
    Ok(())
}

/// Where nothing can be linked with it, the others are measured.
fn without_papi() -> Result<()> {
    let dir = scratch();
    let compiler = dir.join("cc");
    let script = "#!/bin/sh\n\
        case \"$*\" in *-lpapi*) echo 'cannot find -lpapi' >&2; exit 1;; esac\n\
        exec gcc \"$@\"\n";
    std::fs::write(&compiler, script)?;
    std::fs::set_permissions(&compiler, PermissionsExt::from_mode(0o755))?;
    let found = bench(&dir, |command| {
        command.env("CC", &compiler);
    })?;
    found.expect("page", "context-switches")?;
    for event in ["instructions", "context-switches"] {
        let reason = found.reason(&format!("papi of {event}"));
        let reason = reason.context("no reason")?;
        ensure!(
            reason.contains("libpapi-dev") && reason.contains("cannot find -lpapi"),
            "{reason}"
        );
    }
    Ok(())
}
