//! Hardware counters.
use crate::capability::{Capability, Verdict};
use crate::privilege::has_perfmon;
use crate::system::read_trimmed;
use std::path::PathBuf;

const DEVICES: &str = "/sys/bus/event_source/devices";
const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";

pub(crate) fn capabilities() -> Vec<Capability> {
    vec![pmu(), rdpmc(), paranoid()]
}

/// The core's counters; processors with two kinds of core have a device each.
fn device() -> Option<PathBuf> {
    ["cpu", "cpu_core"]
        .into_iter()
        .map(|name| PathBuf::from(DEVICES).join(name))
        .find(|path| path.exists())
}

fn pmu() -> Capability {
    let verdict = match (device(), std::fs::exists(DEVICES)) {
        (Some(path), _) => Verdict::ok(format!("{} is registered", path.display())),
        (None, Ok(true)) => Verdict::missing(
            "the kernel has found no counters in this processor",
            "bare metal, or a virtual machine with a PMU (QEMU: -cpu host,pmu=on)",
        ),
        (None, _) => Verdict::missing("a kernel without perf events", "CONFIG_PERF_EVENTS"),
    };
    let purpose =
        "counts of instructions or cache misses: `record -f 'f(@instructions)'`, `slice --event`";
    Capability::new("pmu", purpose, DEVICES, verdict)
}

fn rdpmc() -> Capability {
    let purpose = "counters of the processor, read in a probe: `record -f 'f(@instructions)'`";
    let verdict = match device() {
        None => Verdict::missing("no counters to read", "see pmu"),
        Some(device) => {
            let path = device.join("rdpmc");
            let remedy = format!("echo 1 > {}", path.display());
            match read_trimmed(&path.to_string_lossy()).as_deref() {
                Ok("1") => Verdict::ok("allowed where an event is open"),
                Ok("2") => Verdict::ok("allowed everywhere"),
                Ok("0") => Verdict::missing("switched off", remedy),
                Ok(other) => Verdict::unknown(format!("rdpmc is {other}"), remedy),
                Err(error) => Verdict::unknown(error, remedy),
            }
        }
    };
    Capability::new("rdpmc", purpose, "sysfs", verdict)
}

fn paranoid() -> Capability {
    let remedy = "sysctl kernel.perf_event_paranoid=2, or CAP_PERFMON";
    let verdict = match read_trimmed(PARANOID) {
        Err(error) => Verdict::missing(error, "a kernel with CONFIG_PERF_EVENTS"),
        Ok(text) => match text.parse::<i32>() {
            Ok(level) if level <= 2 => Verdict::ok(format!("perf_event_paranoid {level}")),
            Ok(level) if has_perfmon() => Verdict::ok(format!(
                "perf_event_paranoid {level}, lifted by CAP_PERFMON"
            )),
            Ok(level) => Verdict::missing(format!("perf_event_paranoid {level}"), remedy),
            Err(_) => Verdict::unknown(format!("perf_event_paranoid {text}"), remedy),
        },
    };
    let purpose = "off-CPU time of calls (`record`), and `slice --event`";
    Capability::new("perf-events", purpose, PARANOID, verdict)
}
