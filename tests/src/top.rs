//! `hopscope top`: what it counts, its screen, and that it leaves the target as it was however it ends.
pub(crate) mod growing;
mod terminal;

use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::mapped::mapped;
use hopscope_tests::{Requirement, Suite, Target, compile_c, hopscope, hopscope_bin, scratch};
use nix::poll::poll;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use terminal::Terminal;

const WATCHDOG: Duration = Duration::from_secs(60);
/// Between two screens.
const INTERVAL: Duration = Duration::from_millis(200);

pub(crate) fn register(suite: &mut Suite) {
    let needs = &[Requirement::Gcc, Requirement::Fsgsbase];
    let screen = &[Requirement::Gcc, Requirement::Fsgsbase, Requirement::Tmux];
    suite.case("top::lines_balance", needs, lines);
    suite.case("top::refuses_a_pipe_without_raw", needs, no_terminal);
    suite.case("top::a_closed_pipe_detaches", needs, closed_pipe);
    suite.case(
        "top::a_ready_file_that_cannot_be_written",
        needs,
        no_ready_file,
    );
    suite.case("top::killed_recorder", needs, killed);
    suite.case("top::screen_filter_pause_save_quit", screen, screen_keys);
    suite.case("top::closed_terminal_detaches", screen, closed_terminal);
    suite.case(
        "top::killed_recorder_leaves_the_terminal_as_it_was",
        screen,
        killed_screen,
    );
}

/// Checks its own arithmetic.
struct Paced(Target);

impl Paced {
    fn start() -> Result<Paced> {
        let mut command = Command::new(compile_c(&["paced.c"], &["-O2"])?);
        Ok(Paced(Target::spawn(command.stdout(Stdio::piped()))?))
    }

    fn pid(&self) -> String {
        self.0.pid().to_string()
    }

    /// Nothing of ours is left in it, and it found every sum right.
    fn unharmed(self) -> Result<()> {
        let started = Instant::now();
        // Whoever detaches may be no child of ours: its end is seen in the target only.
        loop {
            let left = mapped(self.0.pid())?;
            if left.is_empty() {
                break;
            }
            ensure!(started.elapsed() < WATCHDOG, "left behind: {left:?}");
            poll(&mut [], 20u8)?;
        }
        let said = hopscope(&["detach", "-p", &self.pid()])?.expect_code(0)?;
        ensure!(said.stderr.contains("has no probes"), "{}", said.stderr);
        self.0.signal(Signal::SIGTERM)?;
        let out = self.0.output()?;
        let said = String::from_utf8_lossy(&out.stdout);
        ensure!(
            out.status.success() && said.contains("paced: 0 wrong"),
            "{} {said}",
            out.status
        );
        Ok(())
    }

    fn top(&self, more: &[&str]) -> Command {
        let mut command = Command::new(hopscope_bin());
        command.args([
            "top",
            "-p",
            &self.pid(),
            "-f",
            "/^paced_/",
            "--no-calibration",
        ]);
        command.args(["--max-overhead", "1e9"]).args(more);
        command
    }

    fn top_line(&self, ready: &Path) -> String {
        format!(
            "exec {} top -p {} -f '/^paced_/' --no-calibration --max-overhead 1e9 -i {}ms --ready-file '{}'",
            hopscope_bin().display(),
            self.pid(),
            INTERVAL.as_millis(),
            ready.display()
        )
    }
}

/// Each outer call made one inner call, and nothing is counted that was not there.
fn lines() -> Result<()> {
    let target = Paced::start()?;
    // Room for all of a second's records, however long the reader waits for a processor.
    let asked = [
        "--raw", "--json", "-i", "200ms", "-d", "1s", "--buffer", "64M",
    ];
    let out = target.top(&asked).output()?;
    let said = String::from_utf8_lossy(&out.stdout);
    ensure!(
        out.status.success(),
        "{}: {}",
        out.status,
        String::from_utf8_lossy(&out.stderr)
    );
    let (mut outer, mut inner, mut records, mut lost) = (0, 0, 0, 0);
    for line in said.lines() {
        let value: Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
        let number = |field: &str| {
            value[field]
                .as_u64()
                .with_context(|| format!("{field} in {line}"))
        };
        if value["type"] == "interval" {
            records += number("records")?;
            lost = number("lost_whole")?;
            continue;
        }
        let ns = |field: &str| {
            value[field]
                .as_f64()
                .with_context(|| format!("{field} in {line}"))
        };
        ensure!(
            ns("p50_ns")? <= ns("p99_ns")? && ns("p99_ns")? <= ns("max_ns")?,
            "{line}"
        );
        match value["function"].as_str() {
            Some("paced_outer") => outer += number("calls")?,
            Some("paced_inner") => inner += number("calls")?,
            other => anyhow::bail!("{other:?} was not asked for"),
        }
    }
    ensure!(lost == 0, "{lost} records lost by a target that rests");
    // The call that is open at either end has one record here.
    ensure!(
        outer > 100 && inner.abs_diff(outer) <= 1,
        "{outer} outer, {inner} inner calls"
    );
    ensure!(
        records.abs_diff(2 * (outer + inner)) <= 4,
        "{records} records of {outer} + {inner} calls"
    );
    target.unharmed()
}

fn no_terminal() -> Result<()> {
    let target = Paced::start()?;
    hopscope(&["top", "-p", &target.pid(), "-f", "paced_outer"])?
        .expect_refusal(&["terminal", "--raw"])?;
    target.unharmed()
}

fn closed_pipe() -> Result<()> {
    let target = Paced::start()?;
    let mut top = target
        .top(&["--raw", "-i", "100ms"])
        .stdout(Stdio::piped())
        .spawn()?;
    let out = top.stdout.take().context("its output")?;
    let mut first = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut first)?;
    ensure!(first.starts_with("# seconds"), "{first}");
    let status = top.wait()?;
    ensure!(status.success(), "a reader that went away: {status}");
    target.unharmed()
}

/// The recorder below a guardian.
fn recorder_of(guardian: i32) -> Result<Pid> {
    let path = format!("/proc/{guardian}/task/{guardian}/children");
    let children = std::fs::read_to_string(&path)?;
    let first = children.split_whitespace().next();
    Ok(Pid::from_raw(
        first.context("the guardian has no child")?.parse()?,
    ))
}

/// Whoever waits for that file would wait for ever.
fn no_ready_file() -> Result<()> {
    let target = Paced::start()?;
    let mut command = target.top(&["--raw", "--ready-file", "/nonexistent/ready"]);
    let out = run(&mut command)?.expect_code(2)?;
    ensure!(out.stderr.contains("writing /nonexistent/ready"), "{out:?}");
    target.unharmed()
}

fn killed() -> Result<()> {
    let target = Paced::start()?;
    let ready = scratch().join("ready");
    let mut command = target.top(&["--raw", "--ready-file"]);
    command
        .arg(&ready)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let top = Target::spawn_with_ready_file(&mut command, &ready)?;
    kill(recorder_of(top.pid())?, Signal::SIGKILL)?;
    let out = top.output()?;
    let said = String::from_utf8_lossy(&out.stderr);
    ensure!(
        out.status.code() == Some(2) && said.contains("restoring its targets"),
        "{} {said}",
        out.status
    );
    target.unharmed()
}

/// A row of the screen with a rate in it: something was measured.
fn measures(screen: &str, function: &str) -> bool {
    let row = screen.lines().find(|line| line.starts_with(function));
    row.is_some_and(|row| row.contains(" k ") && row.contains('%') && row.contains("ns"))
}

fn start_screen(dir: &Path, target: &Paced) -> Result<Terminal> {
    let line = target.top_line(&dir.join("ready"));
    let terminal = Terminal::run(dir, &format!("({line}); echo ended $?"))?;
    terminal.until("measured", |s| {
        measures(s, "paced_outer") && measures(s, "paced_inner")
    })?;
    Ok(terminal)
}

fn screen_keys() -> Result<()> {
    let (target, dir) = (Paced::start()?, scratch());
    let terminal = start_screen(&dir, &target)?;
    println!("{}", terminal.screen()?);
    for key in ["/", "i", "n", "n", "Enter"] {
        terminal.key(key)?;
    }
    terminal.until("filtered", |s| {
        !s.contains("paced_outer") && measures(s, "paced_inner")
    })?;
    terminal.key("Escape")?;
    terminal.until("unfiltered", |s| s.contains("paced_outer"))?;
    terminal.key("Space")?;
    let still = terminal.until_whole("paused", |s| s.contains("PAUSED"))?;
    // Of these intervals none is shown; the seconds since the start alone would have moved.
    terminal.stays(&still, 10 * INTERVAL)?;
    terminal.key("s")?;
    let saved = terminal.until("saved", |s| s.contains("saved to hopscope-top-1.csv"))?;
    let numbers = |s: &str| s.lines().take(2).map(str::to_owned).collect::<Vec<_>>();
    ensure!(
        numbers(&saved) == numbers(&still),
        "{still}\nis now\n{saved}"
    );
    let csv = std::fs::read_to_string(dir.join("hopscope-top-1.csv"))?;
    for function in ["paced_outer", "paced_inner"] {
        ensure!(
            csv.contains(&format!("\"{function}\"")),
            "no {function} in {csv}"
        );
    }
    terminal.key("Space")?;
    terminal.until("going on", |s| !s.contains("PAUSED"))?;
    terminal.key("q")?;
    let left = terminal.until("ended", |s| s.contains("ended 0"))?;
    ensure!(
        left.contains("hopscope: detached: stopped by the user"),
        "{left}"
    );
    ensure!(
        !left.contains("calls/s over time"),
        "the screen was not put back:\n{left}"
    );
    target.unharmed()
}

fn closed_terminal() -> Result<()> {
    let (target, dir) = (Paced::start()?, scratch());
    let terminal = start_screen(&dir, &target)?;
    ensure!(
        !mapped(target.0.pid())?.is_empty(),
        "nothing is attached: nothing would be tested"
    );
    terminal.close()?;
    target.unharmed()
}

fn killed_screen() -> Result<()> {
    let (target, dir) = (Paced::start()?, scratch());
    let line = target.top_line(&dir.join("ready"));
    let line = format!(
        "stty -a >before; (echo $$ >/dev/null; {line}) & echo $! >guardian; fg; stty -a >after; echo ended"
    );
    let terminal = Terminal::run(&dir, &format!("set -m; {line}"))?;
    terminal.until("measured", |s| measures(s, "paced_outer"))?;
    // The shell may write it later than its child measures.
    let guardian = || {
        let text = std::fs::read_to_string(dir.join("guardian")).ok()?;
        text.trim().parse::<i32>().ok()
    };
    terminal.until("a guardian", |_| guardian().is_some())?;
    let guardian = guardian().context("guardian")?;
    kill(recorder_of(guardian)?, Signal::SIGKILL)?;
    let left = terminal.until("ended", |s| s.lines().any(|l| l == "ended"))?;
    ensure!(left.contains("restoring its targets"), "{left}");
    ensure!(
        !left.contains("calls/s over time"),
        "the screen was not put back:\n{left}"
    );
    let [before, after] = ["before", "after"].map(|name| std::fs::read_to_string(dir.join(name)));
    ensure!(before? == after?, "the terminal's settings changed");
    target.unharmed()
}
