//! What the user should know of modules that came while a target was recorded.
use hopscope_event::table::TargetStops;
use hopscope_process::stop_times::StopTimes;
use std::collections::BTreeMap;
use std::time::Duration;

/// Modules that are named.
const NAMED_AT_MOST: usize = 20;

#[derive(Default)]
pub(super) struct Notes {
    pid: i32,
    /// Files that are being read.
    reading: Vec<String>,
    /// By file name.
    modules: BTreeMap<String, Module>,
    /// Looks that could add nothing, and why the first of them could not.
    failed: u64,
    why: String,
    /// For what was added, and for what went.
    stops: StopTimes,
    /// Of additions that went.
    of_gone: Vec<String>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Module {
    loads: u64,
    functions: usize,
    longest: Duration,
}

impl Notes {
    pub(super) fn of(pid: i32) -> Notes {
        Notes {
            pid,
            ..Notes::default()
        }
    }

    /// `functions` of it are measured, `after` it was seen.
    pub(super) fn measured(&mut self, module: &str, functions: usize, after: Duration) {
        let module = self.modules.entry(module.to_owned()).or_default();
        module.loads += 1;
        module.functions = module.functions.max(functions);
        module.longest = module.longest.max(after);
    }

    /// They were loaded, and nothing of them is measured before they are read.
    pub(super) fn reads(&mut self, modules: Vec<String>) {
        self.reading = modules;
    }

    /// What an addition that goes had to say. Each text once.
    pub(super) fn goes(&mut self, notes: Vec<String>) {
        for note in notes {
            if !self.of_gone.contains(&note) && self.of_gone.len() < NAMED_AT_MOST {
                self.of_gone.push(note);
            }
        }
    }

    /// Its threads were stopped.
    pub(super) fn stopped(&mut self, stops: &StopTimes) {
        self.stops.join(stops);
    }

    pub(super) fn stops(&self) -> Option<TargetStops> {
        let totals = self.stops.totals(self.pid);
        (totals.threads > 0).then_some(totals)
    }

    /// Nothing of these is measured.
    pub(super) fn failed(&mut self, modules: &[String], why: String) {
        if self.failed == 0 {
            let more = match modules.len() {
                ..=1 => String::new(),
                n => format!(" and {} more", n - 1),
            };
            let first = modules.first().map_or("", String::as_str);
            self.why = format!("{first}{more}: {why}");
        }
        self.failed += 1;
    }

    pub(super) fn text(&self) -> Vec<String> {
        let pid = self.pid;
        let mut text: Vec<String> = Vec::new();
        for (name, module) in self.modules.iter().take(NAMED_AT_MOST) {
            let times = match module.loads {
                1 => String::new(),
                n => format!(" {n} times"),
            };
            text.push(format!(
                "process {pid}: {name} was loaded while recording{times}: {} functions are measured, from {:.1} ms after the load was seen; calls before that, and of children forked before, are not recorded",
                module.functions,
                module.longest.as_secs_f64() * 1e3
            ));
        }
        if self.modules.len() > NAMED_AT_MOST {
            let more = self.modules.len() - NAMED_AT_MOST;
            text.push(format!(
                "process {pid}: functions of {more} more modules are measured that were loaded while recording"
            ));
        }
        if !self.reading.is_empty() {
            text.push(format!(
                "process {pid}: the recording ended while files were read that had been loaded: nothing of them ({}), nor of what any target loaded since, is measured",
                self.reading.join(", ")
            ));
        }
        if self.failed > 0 {
            text.push(format!(
                "process {pid}: {} loads while recording are not measured; the first is {}",
                self.failed, self.why
            ));
        }
        text.extend_from_slice(&self.of_gone);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_being_read_at_the_end_is_named() {
        let mut notes = Notes::of(7);
        notes.reads(vec!["big.so".into(), "small.so".into()]);
        let text = notes.text().join("\n");
        assert!(
            text.contains("nothing of them (big.so, small.so), nor "),
            "{text}"
        );
        notes.reads(Vec::new());
        assert_eq!(notes.text(), [""; 0]);
    }

    #[test]
    fn loads_of_which_nothing_is_measured_are_told_apart() {
        let mut notes = Notes::of(7);
        notes.measured("plug.so", 2, Duration::from_millis(5));
        notes.measured("plug.so", 2, Duration::from_millis(3));
        notes.failed(&["plug.so".into(), "other.so".into()], "gone".into());
        let text = notes.text();
        assert!(
            text[0].contains("2 times: 2 functions are measured, from 5.0 ms"),
            "{text:?}"
        );
        assert!(
            text[1].contains(
                "1 loads while recording are not measured; the first is plug.so and 1 more: gone"
            ),
            "{text:?}"
        );
    }
}
