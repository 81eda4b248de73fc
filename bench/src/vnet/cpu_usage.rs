//! What a window cost: vmstat's columns of the machine, and the same of single processes.
use crate::error::{Error, Result};
use serde::Serialize;
use std::path::Path;

/// Since the machine or the process was started.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reading {
    user: f64,
    system: f64,
    idle: f64,
    wait: f64,
    interrupts: f64,
    switches: f64,
}

/// As vmstat(8) has it: shares of all processors in percent, counts a second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(super) struct Vmstat {
    pub(super) us: f64,
    pub(super) sy: f64,
    pub(super) id: f64,
    pub(super) wa: f64,
    #[serde(rename = "in")]
    pub(super) interrupts: f64,
    pub(super) cs: f64,
}

impl Reading {
    pub(super) fn now() -> Result<Reading> {
        let path = Path::new("/proc/stat");
        let text = std::fs::read_to_string(path).map_err(Error::file("read", path))?;
        let mut reading = Reading::default();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let name = words.next().unwrap_or_default();
            let n: Vec<f64> = words.take(8).filter_map(|word| word.parse().ok()).collect();
            match (name, &n[..]) {
                // user nice system idle iowait irq softirq steal (proc(5))
                ("cpu", [user, nice, system, idle, wait, irq, softirq, ..]) => {
                    reading.user = user + nice;
                    reading.system = system + irq + softirq;
                    (reading.idle, reading.wait) = (*idle, *wait);
                }
                ("intr", [sum, ..]) => reading.interrupts = *sum,
                ("ctxt", [sum, ..]) => reading.switches = *sum,
                _ => {}
            }
        }
        Ok(reading)
    }

    pub(super) fn since(&self, before: &Reading, seconds: f64) -> Vmstat {
        let ticks = |r: &Reading| r.user + r.system + r.idle + r.wait;
        let all = (ticks(self) - ticks(before)).max(1.0);
        let share = |of: fn(&Reading) -> f64| 100.0 * (of(self) - of(before)) / all;
        Vmstat {
            us: share(|r| r.user),
            sy: share(|r| r.system),
            id: share(|r| r.idle),
            wa: share(|r| r.wait),
            interrupts: (self.interrupts - before.interrupts) / seconds,
            cs: (self.switches - before.switches) / seconds,
        }
    }
}

/// One process that has one thread at work, its first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(super) struct Thread {
    pub(super) cpu_ns: f64,
    /// Ready, and no processor had time for it.
    pub(super) wait_ns: f64,
    pub(super) switches: f64,
}

impl Thread {
    pub(super) fn of(pid: u32) -> Result<Thread> {
        let read = |name: &str| {
            let path = format!("/proc/{pid}/{name}");
            std::fs::read_to_string(&path).map_err(Error::file("read", &path))
        };
        // Time on a processor, time waiting for one (Documentation/scheduler/sched-stats.rst).
        let times = read("schedstat")?;
        let times: Vec<f64> = times
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        let status = read("status")?;
        let switches = status
            .lines()
            .filter(|line| line.contains("ctxt_switches"))
            .filter_map(|line| line.split_whitespace().last()?.parse::<f64>().ok());
        Ok(Thread {
            cpu_ns: times.first().copied().unwrap_or_default(),
            wait_ns: times.get(1).copied().unwrap_or_default(),
            switches: switches.sum(),
        })
    }

    pub(super) fn since(self, before: Thread) -> Thread {
        Thread {
            cpu_ns: self.cpu_ns - before.cpu_ns,
            wait_ns: self.wait_ns - before.wait_ns,
            switches: self.switches - before.switches,
        }
    }
}
