//! HdrHistogram's interval log (version 1.2 with V2 histograms): latency over time, for
//! HistogramLogAnalyzer, HdrHistogramVisualizer and the readers of all languages. One tag for each
//! function (own time of a call) and each stream (latency of its packets). Nanoseconds.
mod table;
mod v2;

pub use table::HdrTables;

use super::Facts;
use crate::printable_text::printable;
use hdrhistogram::Histogram;
use hopscope_event::{Ns, Tsc, TscFrequency};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// A time below zero (a correction larger than what was measured) has no place in a histogram. It counts
/// as 0: left out it would shift every percentile of its tag.
fn record(bins: &mut Histogram<u64>, ns: i64) -> bool {
    let done = bins.record(ns.max(0) as u64);
    debug_assert!(done.is_ok(), "an auto-resizing histogram takes any value");
    ns < 0
}

fn histogram() -> Histogram<u64> {
    Histogram::new(3).expect("3 digits is in the allowed 0..=5")
}

/// Times of a tag: all, and those below zero.
#[derive(Debug, Clone, Copy, Default)]
struct Times {
    all: u64,
    negative: u64,
}

impl Times {
    fn add(&mut self, is_negative: bool) {
        self.all += 1;
        self.negative += u64::from(is_negative);
    }

    /// A comment line, where there is something to say.
    fn write(self, out: &mut impl Write, tag: &str) -> io::Result<()> {
        match self.negative {
            0 => Ok(()),
            n => writeln!(
                out,
                "#[Tag: {tag}; {n} of {} times are below zero and count as 0]",
                self.all
            ),
        }
    }
}

fn doubt(facts: &mut Facts, times: impl Iterator<Item = Times>) {
    facts.doubt(
        "negative_times_counted_as_0",
        times.map(|t| t.negative).sum(),
    );
}

pub struct HdrLog<W: Write> {
    out: W,
    start: Tsc,
    frequency: TscFrequency,
    step_ticks: u64,
    /// Intervals that may still get values, by number, then by tag.
    open: BTreeMap<u64, BTreeMap<String, Histogram<u64>>>,
    newest: u64,
    times: BTreeMap<String, Times>,
    late: u64,
}

/// Threads are read in turn, so a value may come this many intervals after a newer one.
const OPEN_MAX: u64 = 4;

impl<W: Write> HdrLog<W> {
    /// # Errors
    /// Those of `out`.
    pub fn new(
        mut out: W,
        start: Tsc,
        start_realtime_ns: u64,
        frequency: TscFrequency,
        step: Ns,
    ) -> io::Result<HdrLog<W>> {
        let seconds = start_realtime_ns as f64 / 1e9;
        writeln!(out, "#[Histogram log format version 1.2]")?;
        writeln!(out, "#[StartTime: {seconds:.3} (seconds since epoch)]")?;
        writeln!(
            out,
            "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\""
        )?;
        Ok(HdrLog {
            out,
            start,
            frequency,
            step_ticks: frequency.ticks(step).max(1),
            open: BTreeMap::new(),
            newest: 0,
            times: BTreeMap::new(),
            late: 0,
        })
    }

    /// # Errors
    /// Those of the output.
    pub fn add(&mut self, tag: &str, at: Tsc, ticks: i64) -> io::Result<()> {
        let number = (at - self.start).max(0) as u64 / self.step_ticks;
        self.newest = self.newest.max(number);
        if number + OPEN_MAX < self.newest {
            self.late += 1;
        }
        let tags = self.open.entry(number).or_default();
        if !tags.contains_key(tag) {
            tags.insert(tag.to_owned(), histogram());
        }
        if !self.times.contains_key(tag) {
            self.times.insert(tag.to_owned(), Times::default());
        }
        if let (Some(bins), Some(times)) = (tags.get_mut(tag), self.times.get_mut(tag)) {
            times.add(record(bins, self.frequency.ns(ticks)));
        }
        while let Some((oldest, _)) = self.open.first_key_value()
            && oldest + OPEN_MAX < self.newest
        {
            self.write_oldest()?;
        }
        Ok(())
    }

    fn write_oldest(&mut self) -> io::Result<()> {
        let Some((number, tags)) = self.open.pop_first() else {
            return Ok(());
        };
        let seconds = |ticks: u64| self.frequency.ns(ticks as i64) as f64 / 1e9;
        let (from, length) = (seconds(number * self.step_ticks), seconds(self.step_ticks));
        for (tag, bins) in tags {
            let max = bins.max() as f64 / 1e6;
            let encoded = v2::encode(&bins);
            writeln!(
                self.out,
                "Tag={},{from:.3},{length:.3},{max:.3},{encoded}",
                tag_text(&tag)
            )?;
        }
        Ok(())
    }

    /// Writes what is open; values of another kind follow, from the start again.
    ///
    /// # Errors
    /// Those of the output.
    pub fn settle(&mut self) -> io::Result<()> {
        while !self.open.is_empty() {
            self.write_oldest()?;
        }
        self.newest = 0;
        Ok(())
    }

    /// Facts are comments; they come last, since only then they are known.
    ///
    /// # Errors
    /// Those of the output.
    pub fn finish(mut self, facts: &mut Facts) -> io::Result<()> {
        self.settle()?;
        for (tag, times) in &self.times {
            times.write(&mut self.out, &tag_text(tag))?;
        }
        doubt(facts, self.times.values().copied());
        facts.doubt("values_in_lines_out_of_order", self.late);
        for fact in facts.matters() {
            let text = printable(&format!("{}: {}", fact.name, fact.text()));
            writeln!(self.out, "#[missing or doubtful: {text}]")?;
        }
        self.out.flush()
    }
}

/// A tag ends at the first comma.
fn tag_text(name: &str) -> String {
    let plain = |c: char| match c {
        ',' => ';',
        c if c.is_whitespace() => '_',
        c => c,
    };
    printable(name).chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::tag_text;

    #[test]
    fn names_do_not_make_fields_or_lines() {
        assert_eq!(tag_text("nf!map<int, int>\n"), r"nf!map<int;_int>\x0a");
    }
}
