//! What a recording says of the machine that it was made on.
use hopscope_event::clock::read::{clock_sync, measure_frequency};
use hopscope_event::{RecordingMeta, TscFrequency, record};
use nix::sys::utsname::{UtsName, uname};

/// Its release, as `uname -r` says.
pub fn kernel() -> String {
    let release = |u: UtsName| u.release().to_string_lossy().into_owned();
    uname().map(release).unwrap_or_default()
}

/// Takes about 100 ms: the frequency of the time-stamp counter is measured.
pub fn meta() -> RecordingMeta {
    meta_at(measure_frequency())
}

/// The same where the frequency is known.
pub fn meta_at(frequency: TscFrequency) -> RecordingMeta {
    let host = uname().map(|u| u.nodename().to_string_lossy().into_owned());
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = |name: &str| {
        let mut lines = cpuinfo.lines();
        lines.find_map(|l| Some(l.strip_prefix(name)?.split_once(": ")?.1))
    };
    let flags = line("flags").unwrap_or_default();
    let has = |flag| flags.split(' ').any(|f| f == flag);
    RecordingMeta {
        hopscope_version: env!("CARGO_PKG_VERSION").into(),
        command_line: std::env::args().collect(),
        host: host.unwrap_or_default(),
        kernel: kernel(),
        cpu: line("model name").unwrap_or("unknown").into(),
        cpus_online: std::thread::available_parallelism().map_or(0, |n| n.get() as u32),
        tsc_frequency: frequency,
        tsc_invariant: has("constant_tsc") && has("nonstop_tsc"),
        start: clock_sync(),
        stride: record::STRIDE as u32,
        ring_records: 0,
        probe_cost: None,
    }
}
