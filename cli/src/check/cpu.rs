//! What the processor gives.
use super::{Capability, State};

pub(super) fn capabilities() -> Vec<Capability> {
    vec![tsc()]
}

fn flags() -> Option<Vec<String>> {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = cpuinfo.lines().find(|line| line.starts_with("flags"))?;
    let (_, words) = line.split_once(':')?;
    Some(words.split_whitespace().map(str::to_string).collect())
}

fn tsc() -> Capability {
    let wanted = ["constant_tsc", "nonstop_tsc"];
    let (state, found) = match flags() {
        None => (State::Unknown, "/proc/cpuinfo has no flags".to_string()),
        Some(flags) => {
            let lacking: Vec<&str> = wanted
                .into_iter()
                .filter(|flag| !flags.iter().any(|has| has == flag))
                .collect();
            match lacking.is_empty() {
                true => (State::Ok, wanted.join(" ")),
                false => (State::Missing, format!("no {}", lacking.join(" "))),
            }
        }
    };
    Capability {
        name: "invariant-tsc",
        state,
        needed_by_record: true,
        found,
        purpose: "time stamps that mean the same on every core and at every frequency",
        remedy: match state {
            State::Ok => String::new(),
            _ => "another processor, or expose the invariant TSC to the virtual machine".into(),
        },
        determined_by: "/proc/cpuinfo",
    }
}
