//! What a recording says of the machine that it was made on.
use hopscope_event::clock::read::{clock_sync, measure_frequency};
use hopscope_event::{RecordingMeta, record};
use hopscope_probe::counters::tsc_is_invariant;
use nix::sys::utsname::{UtsName, uname};

/// Its release, as `uname -r` says.
pub fn kernel() -> String {
    let release = |u: UtsName| u.release().to_string_lossy().into_owned();
    uname().map(release).unwrap_or_default()
}

/// Takes about 100 ms: the frequency of the time-stamp counter is measured.
pub fn meta() -> RecordingMeta {
    let uname = uname();
    let text = |f: &dyn Fn(&UtsName) -> String| uname.as_ref().map(f).unwrap_or_default();
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpuinfo
        .lines()
        .find_map(|l| l.strip_prefix("model name")?.split_once(": "))
        .map(|(_, n)| n);
    RecordingMeta {
        hopscope_version: env!("CARGO_PKG_VERSION").into(),
        command_line: std::env::args().collect(),
        host: text(&|u| u.nodename().to_string_lossy().into_owned()),
        kernel: kernel(),
        cpu: cpu.unwrap_or("unknown").into(),
        cpus_online: std::thread::available_parallelism().map_or(0, |n| n.get() as u32),
        tsc_frequency: measure_frequency(),
        tsc_invariant: tsc_is_invariant(),
        start: clock_sync(),
        stride: record::STRIDE as u32,
        ring_records: 0,
        probe_cost: None,
    }
}
