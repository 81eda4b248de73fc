//! HdrHistogram's percentile table, as `outputPercentileDistribution` of its Java library writes it,
//! for the HdrHistogram plotter and spreadsheets: values over percentiles with five steps to each
//! halving of the distance to 100 %. A table for each tag, nanoseconds.
use super::{Times, doubt, histogram, record, tag_text};
use crate::export::Facts;
use crate::printable_text::printable;
use hdrhistogram::Histogram;
use hopscope_event::TscFrequency;
use std::collections::BTreeMap;
use std::io::{self, Write};

const STEPS: u32 = 5;

pub struct HdrTables {
    frequency: TscFrequency,
    tags: BTreeMap<String, (Histogram<u64>, Times)>,
}

impl HdrTables {
    pub fn new(frequency: TscFrequency) -> HdrTables {
        HdrTables {
            frequency,
            tags: BTreeMap::new(),
        }
    }

    pub fn add(&mut self, tag: &str, ticks: i64) {
        if !self.tags.contains_key(tag) {
            self.tags
                .insert(tag.to_owned(), (histogram(), Times::default()));
        }
        if let Some((bins, times)) = self.tags.get_mut(tag) {
            times.add(record(bins, self.frequency.ns(ticks)));
        }
    }

    /// As [`HdrTables::write`] takes them.
    pub fn tags(&self) -> impl Iterator<Item = String> {
        self.tags.keys().map(|tag| tag_text(tag))
    }

    /// All tables, or that of one tag: then nothing but the table, for readers that take one only.
    ///
    /// # Errors
    /// Those of the output.
    pub fn write(
        &self,
        out: &mut impl Write,
        only: Option<&str>,
        facts: &mut Facts,
    ) -> io::Result<()> {
        doubt(facts, self.tags.values().map(|(_, times)| *times));
        for (tag, (bins, times)) in &self.tags {
            let tag = tag_text(tag);
            if only.is_some_and(|only| only != tag) {
                continue;
            }
            if only.is_none() {
                writeln!(out, "#[Tag: {tag}; nanoseconds]")?;
            }
            table(out, bins)?;
            times.write(out, &tag)?;
        }
        for fact in facts.matters() {
            let text = printable(&format!("{}: {}", fact.name, fact.text()));
            writeln!(out, "#[missing or doubtful: {text}]")?;
        }
        out.flush()
    }
}

fn table(out: &mut impl Write, bins: &Histogram<u64>) -> io::Result<()> {
    writeln!(
        out,
        "{:>12} {:>14} {:>10} {:>14}\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    )?;
    let mut total = 0;
    for step in bins.iter_quantiles(STEPS) {
        total += step.count_since_last_iteration();
        let (value, quantile) = (step.value_iterated_to() as f64, step.quantile_iterated_to());
        write!(out, "{value:>12.3} {quantile:>14.12} {total:>10}")?;
        if quantile < 1.0 {
            writeln!(out, " {:>14.2}", 1.0 / (1.0 - quantile))?
        } else {
            writeln!(out)?
        }
    }
    writeln!(
        out,
        "#[Mean    = {:>12.3}, StdDeviation   = {:>12.3}]\n\
         #[Max     = {:>12.3}, Total count    = {:>12}]\n\
         #[Buckets = {:>12}, SubBuckets     = {:>12}]",
        bins.mean(),
        bins.stdev(),
        bins.max() as f64,
        bins.len(),
        bins.buckets(),
        // 2 x 10^3, as a power of 2: what three digits need.
        2048
    )
}
