//! Which functions to measure, so that a packet meets as many probes as asked.
use super::chosen::Chosen;
use super::window;
use crate::error::{Error, Result};
use crate::function::{BATCH, Running};
use crate::hopscope::Hopscope;
use serde_json::Value;
use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

/// Probe executions (an entry or an exit), for each batch of packets or each packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Density {
    executions: u32,
    pub(super) per_batch: bool,
}

impl Density {
    /// The source paper counts those of a batch, which its figures take for those of a packet: one
    /// to 50. The same of each single packet is what a batch of one would meet.
    pub(super) const ALL: [Density; 8] = [
        Density::per_batch(2),
        Density::per_batch(10),
        Density::per_batch(20),
        Density::per_batch(50),
        Density::per_packet(2),
        Density::per_packet(10),
        Density::per_packet(20),
        Density::per_packet(50),
    ];

    const fn per_batch(executions: u32) -> Density {
        Density {
            executions,
            per_batch: true,
        }
    }

    const fn per_packet(executions: u32) -> Density {
        Density {
            executions,
            per_batch: false,
        }
    }

    pub(super) fn executions_per_packet(self) -> f64 {
        let batch = if self.per_batch { BATCH } else { 1 };
        f64::from(self.executions) / f64::from(batch)
    }
}

impl fmt::Display for Density {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.per_batch { "batch" } else { "packet" };
        write!(f, "{} executions a {what}", self.executions)
    }
}

/// A function that handles packets.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Called {
    /// `module!function`.
    pattern: String,
    calls_per_packet: f64,
}

/// Functions until `executions` a packet are reached and not passed: those that are called most
/// often first, so that few are measured.
pub(super) fn functions(called: &[Called], executions: f64) -> Chosen {
    let mut chosen = Chosen {
        patterns: Vec::new(),
        executions: 0.0,
        asked: executions,
    };
    for function in called {
        let adds = 2.0 * function.calls_per_packet;
        if adds > 0.0 && chosen.executions + adds <= 1.1 * executions {
            chosen.executions += adds;
            chosen.patterns.push(function.pattern.clone());
        }
    }
    chosen
}

/// What the worker calls, most often first: everything is measured for a moment. How often for each
/// packet is a rough guess: [`to_scale`].
pub(super) fn called_functions(hopscope: &Hopscope, nf: &mut Running) -> Result<Vec<Called>> {
    let options = ["--no-calibration", "--buffer", "1G"];
    let recording = hopscope.record(nf.pid(), &["*"], &options)?;
    let before = nf.counter.packets()?;
    std::thread::sleep(Duration::from_millis(200));
    let packets = nf.counter.packets()? - before;
    let recorded = recording.stop()?;
    let file = recorded.file.display().to_string();
    // What other threads call has nothing to do with packets.
    let worker = nf.worker()?.to_string();
    let by_function = ["--by", "function", "--thread", &worker, "--json"];
    let report = hopscope.ask(&[&["report", file.as_str()][..], &by_function].concat())?;
    recorded.discard()?;
    if packets == 0 {
        return Err(Error::Nothing {
            what: "a network function that was measured as a whole",
        });
    }
    // What was overwritten is as likely of one function as of another.
    let kept = recorded.number("recorded")?;
    let scale = (kept + recorded.number("lost")?) / kept / packets as f64;
    Ok(called(&report, scale))
}

/// From the lines of `report --by function --json`: what a pattern means alone.
fn called(report: &str, scale: f64) -> Vec<Called> {
    let mut rows: HashMap<String, (f64, u32)> = HashMap::new();
    for line in report.lines() {
        let row: Value = serde_json::from_str(line).unwrap_or_default();
        let text = |key: &str| row.get(key).and_then(Value::as_str);
        // One that is refused shares its name with whoever has the same: a pattern means both.
        let function = match text("type") {
            Some("function") => text("function"),
            Some("refusal") => text("name"),
            _ => None,
        };
        let (Some(module), Some(function)) = (text("module"), function) else {
            continue;
        };
        let module = module.rsplit('/').next().unwrap_or(module);
        let calls = row.get("calls").and_then(Value::as_f64).unwrap_or(0.0);
        let row = rows.entry(format!("{module}!{function}")).or_default();
        *row = (row.0 + calls * scale, row.1 + 1);
    }
    let is_pattern = |c: char| matches!(c, '*' | '?' | '[' | '/' | ',' | '(');
    let mut called: Vec<Called> = rows
        .into_iter()
        // One name for several functions can't be chosen alone.
        .filter(|(name, (calls, functions))| {
            *functions == 1 && *calls > 1e-3 && !name.contains(is_pattern)
        })
        .map(|(pattern, (calls_per_packet, _))| Called {
            pattern,
            calls_per_packet,
        })
        .collect();
    called.sort_by(|a, b| {
        b.calls_per_packet
            .total_cmp(&a.calls_per_packet)
            .then_with(|| a.pattern.cmp(&b.pattern))
    });
    called
}

/// Calls for each packet, from the most frequent function measured alone.
pub(super) fn to_scale(
    called: &mut [Called],
    hopscope: &Hopscope,
    nf: &mut Running,
    milliseconds: u64,
) -> Result<()> {
    let Some(first) = called.first() else {
        return Ok(());
    };
    let alone = Chosen {
        patterns: vec![first.pattern.clone()],
        executions: 0.0,
        asked: 0.0,
    };
    let pair = window::pair(hopscope, nf, &alone, milliseconds, false)?;
    let scale = pair.probe_pairs_per_packet / first.calls_per_packet;
    for function in called {
        function.calls_per_packet *= scale;
    }
    Ok(())
}

/// How far from what was asked a choice may be, by its own measurement.
const NEAR: std::ops::Range<f64> = 0.6..1.7;
const CHOICES_AT_MOST: usize = 4;

/// The functions for this density, measured by themselves: how full batches are depends on what is measured, and with
/// it how often what is called for a batch is called for a packet. Where the choice is wrong, another one is made.
pub(super) fn in_place(
    called: &mut [Called],
    density: Density,
    hopscope: &Hopscope,
    nf: &mut Running,
    milliseconds: u64,
) -> Result<Chosen> {
    let mut chosen = functions(called, density.executions_per_packet());
    for _ in 1..CHOICES_AT_MOST {
        if !chosen.is_reached() {
            break;
        }
        let found = window::measured(hopscope, nf, &chosen, milliseconds)?.executions_per_packet();
        let ratio = found / chosen.executions;
        if NEAR.contains(&ratio) {
            break;
        }
        for function in called.iter_mut() {
            if chosen.patterns.contains(&function.pattern) {
                function.calls_per_packet *= ratio;
            }
        }
        chosen = functions(called, density.executions_per_packet());
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(name: &str, calls_per_packet: f64) -> Called {
        Called {
            pattern: name.into(),
            calls_per_packet,
        }
    }

    #[test]
    fn as_many_as_asked_and_no_more() {
        let all = [at("a", 4.0), at("b", 1.0), at("c", 1.0), at("d", 0.03)];
        let two = functions(&all, 2.0);
        assert_eq!(
            (two.patterns.as_slice(), two.executions),
            (&["b".into(), "d".into()][..], 2.06)
        );
        assert_eq!(functions(&all, 10.0).patterns, ["a", "b", "d"]);
        assert!(two.is_reached() && !functions(&all, 50.0).is_reached());
        assert_eq!(functions(&all, 2.0 / 32.0).patterns, ["d"]);
    }

    /// Found by a bench that was refused one of two functions with one name.
    #[test]
    fn names_of_several_functions_are_left_out() {
        let report = r#"{"type":"function","module":"/a/nf","function":"one","calls":8}
{"type":"function","module":"/a/nf","function":"two","calls":4}
{"type":"function","module":"/a/nf","function":"two","calls":4}
{"type":"function","module":"/a/nf","function":"three","calls":2}
{"type":"refusal","module":"/a/nf","name":"three","reason":"too short"}
{"type":"refusal","module":"/b/other","name":"one","reason":"too short"}"#;
        let names = called(report, 1.0).into_iter().map(|c| c.pattern);
        assert_eq!(names.collect::<Vec<_>>(), ["nf!one"]);
    }
}
