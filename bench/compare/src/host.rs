//! The machine a figure was measured on.
use serde::Serialize;
use std::time::Instant;
use std::{fmt, fs};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Host {
    pub cpu: String,
    pub cpus_online: usize,
    pub kernel: String,
    /// Of CPU 0; "none" where the kernel drives no frequency.
    pub governor: String,
    /// Averages over 1, 5 and 15 minutes.
    pub load_average: [f64; 3],
    /// Share of time that the hypervisor gave to somebody else since boot.
    pub steal_percent: f64,
    pub virtualised: bool,
    pub smt: String,
    /// Measured by the bench program against `CLOCK_MONOTONIC`.
    pub tsc_hz: Option<f64>,
    pub mitigations: Vec<String>,
}

fn text(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn cpuinfo<'a>(info: &'a str, key: &str) -> &'a str {
    info.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.trim() == key)
        .map_or("unknown", |(_, value)| value.trim())
}

/// `cpu user nice system idle iowait irq softirq steal …` of /proc/stat.
fn ticks(stat: &str) -> [f64; 8] {
    let first = stat.lines().next().unwrap_or_default();
    let mut words = first.split_whitespace().skip(1);
    std::array::from_fn(|_| words.next().and_then(|n| n.parse().ok()).unwrap_or(0.0))
}

fn steal_percent_between(before: &str, after: &str) -> f64 {
    let (before, after) = (ticks(before), ticks(after));
    let total = after.iter().sum::<f64>() - before.iter().sum::<f64>();
    if total > 0.0 {
        100.0 * (after[7] - before[7]) / total
    } else {
        0.0
    }
}

fn steal_percent(stat: &str) -> f64 {
    steal_percent_between("", stat)
}

fn load_average() -> [f64; 3] {
    let load: Vec<f64> = text("/proc/loadavg")
        .split_whitespace()
        .take(3)
        .filter_map(|n| n.parse().ok())
        .collect();
    load.try_into().unwrap_or_default()
}

/// What else the machine did while a bench ran.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct During {
    pub seconds: f64,
    /// At the end, over 1, 5 and 15 minutes.
    pub load_average: [f64; 3],
    /// Share of the time of all processors that the hypervisor gave to somebody else.
    pub steal_percent: f64,
    #[serde(skip)]
    begin: (Instant, String),
}

impl During {
    pub fn begin() -> During {
        During {
            seconds: 0.0,
            load_average: [0.0; 3],
            steal_percent: 0.0,
            begin: (Instant::now(), text("/proc/stat")),
        }
    }

    pub fn end(&self) -> During {
        During {
            seconds: self.begin.0.elapsed().as_secs_f64(),
            load_average: load_average(),
            steal_percent: steal_percent_between(&self.begin.1, &text("/proc/stat")),
            begin: self.begin.clone(),
        }
    }
}

impl fmt::Display for During {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [one, five, fifteen] = self.load_average;
        write!(
            f,
            "it took {:.0} s; load at the end {one:.2} {five:.2} {fifteen:.2}, steal meanwhile {:.2} %",
            self.seconds, self.steal_percent
        )
    }
}

fn mitigations() -> Vec<String> {
    let Ok(list) = fs::read_dir("/sys/devices/system/cpu/vulnerabilities") else {
        return Vec::new();
    };
    let mut on: Vec<String> = list
        .flatten()
        .filter_map(|entry| {
            let says = fs::read_to_string(entry.path()).ok()?;
            let name = entry.file_name().to_string_lossy().into_owned();
            says.starts_with("Mitigation")
                .then(|| format!("{name}: {}", says.trim()))
        })
        .collect();
    on.sort();
    on
}

impl Host {
    pub fn look(tsc_hz: Option<f64>) -> Host {
        let info = text("/proc/cpuinfo");
        let or_none = |said: String| match said.trim() {
            "" => "none".to_string(),
            other => other.to_string(),
        };
        Host {
            cpu: cpuinfo(&info, "model name").to_string(),
            cpus_online: info.lines().filter(|l| l.starts_with("processor")).count(),
            kernel: text("/proc/sys/kernel/osrelease").trim().to_string(),
            governor: or_none(text(
                "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
            )),
            load_average: load_average(),
            steal_percent: steal_percent(&text("/proc/stat")),
            virtualised: cpuinfo(&info, "flags")
                .split_whitespace()
                .any(|f| f == "hypervisor"),
            smt: or_none(text("/sys/devices/system/cpu/smt/control")),
            tsc_hz,
            mitigations: mitigations(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_a_share_of_all_time() {
        assert_eq!(
            steal_percent("cpu  10 0 10 70 0 0 0 10 0 0\ncpu0 1\n"),
            10.0
        );
        assert_eq!(steal_percent(""), 0.0);
        let (before, after) = ("cpu  10 0 10 70 0 0 0 10", "cpu  10 0 10 80 0 0 0 40");
        assert_eq!(steal_percent_between(before, after), 75.0);
        assert_eq!(steal_percent_between(after, after), 0.0);
    }

    #[test]
    fn cpuinfo_takes_the_first_of_a_key() {
        let info = "processor\t: 0\nmodel name\t: A\n\nprocessor\t: 1\nmodel name\t: B\n";
        assert_eq!(cpuinfo(info, "model name"), "A");
        assert_eq!(cpuinfo(info, "flags"), "unknown");
    }
}
