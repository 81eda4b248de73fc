//! The kernel's uprobes through `perf stat`: two traps a call, counted and nothing else.
use super::{Bench, Measured, installed};
use crate::passes::{Pairs, pass};
use crate::program::{Target, run};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const PHASES: [&str; 1] = ["hot_e5"];
const FUNCTION: &str = "e5_0000";

/// perf needs tracefs; where it is not mounted it is mounted for this shell only.
fn with_tracefs(script: &str, arguments: &[&str]) -> Command {
    let script = format!(
        "test -e /sys/kernel/tracing/uprobe_events || mount -t tracefs tracefs /sys/kernel/tracing || exit 1\n{script}"
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script, "sh"]);
    command.args(arguments);
    command
}

/// A probe event group of our own, taken out again when dropped.
struct Events(String);

impl Events {
    fn add(executable: &Path) -> Result<Events, String> {
        let group = format!("hopscope_bench_{}", std::process::id());
        let (enter, leave) = (
            format!("{group}:enter={FUNCTION}"),
            format!("{group}:leave={FUNCTION}%return"),
        );
        let executable = executable.to_string_lossy();
        let script = "perf probe -q -x \"$1\" --add \"$2\" --add \"$3\"";
        let events = Events(group);
        run(&mut with_tracefs(script, &[&executable, &enter, &leave]))
            .map_err(|e| e.to_string())?;
        Ok(events)
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        let all = format!("{}:*", self.0);
        if let Err(error) = run(&mut with_tracefs("perf probe -q -d \"$1\"", &[&all])) {
            eprintln!("bench: cannot remove the probe events {all}: {error}");
        }
    }
}

struct Stat(Child);

impl Drop for Stat {
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(self.0.id() as i32), Signal::SIGINT);
        let _ = self.0.wait();
    }
}

pub(crate) fn perf(bench: &Bench<'_>) -> Measured {
    installed("perf")?;
    installed("unshare")?;
    let events = Events::add(&bench.plain.executable)?;
    let group = format!("{}:*", events.0);
    let mut bare = Target::start(bench.plain).map_err(|e| e.to_string())?;
    let mut pairs = Pairs::default();
    let pid = bare.pid.to_string();
    let mut repeat = || {
        let before = pass(&mut bare, &PHASES, bench.milliseconds)?;
        let mut perf = with_tracefs("exec perf stat -e \"$1\" -p \"$2\"", &[&group, &pid]);
        let silent = perf.stdout(Stdio::null()).stderr(Stdio::null());
        let mut stat = Stat(silent.spawn().map_err(crate::error::Error::start("perf"))?);
        // perf says nothing when it is ready; a trap is hard to miss.
        let trapped = |ticks: f64| ticks > 10.0 * before["hot_e5"] + 100.0;
        while !trapped(bare.run("hot_e5", 1)?.median) {
            if let Ok(Some(status)) = stat.0.try_wait() {
                return Err(crate::error::Error::failed("perf stat", status, ""));
            }
        }
        let measured = pass(&mut bare, &PHASES, bench.milliseconds)?;
        drop(stat);
        let after = pass(&mut bare, &PHASES, bench.milliseconds)?;
        pairs.add(&before, &measured, &after);
        Ok(())
    };
    for _ in 0..bench.repetitions {
        repeat().map_err(|e| e.to_string())?;
    }
    Ok(pairs.rows("uprobes", "perf stat, in + out", &PHASES))
}
