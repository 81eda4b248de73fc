//! Distributions as HdrHistogram's tools read them.
use super::Latency;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    #[error("cannot write {path}: {source}", path = .path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("cannot encode a histogram for {path}: {reason}", path = .path.display())]
    Encode { path: PathBuf, reason: String },
}

/// The percentile table (`.hgrm`) that HdrHistogram's `plotFiles.html` draws: columns Value (in
/// microseconds), Percentile, TotalCount, 1/(1-Percentile), five steps per half distance to 1,
/// then a footer with mean, deviation, maximum and count.
pub fn percentile_table(latency: &Latency, out: &mut impl Write) -> std::io::Result<()> {
    let us = |ns: u64| ns as f64 / 1000.0;
    writeln!(
        out,
        "{:>12} {:>14} {:>10} {:>14}\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    )?;
    let mut count = 0;
    for step in latency.bins.iter_quantiles(5) {
        let quantile = step.quantile_iterated_to();
        let value = us(step.value_iterated_to().min(latency.max_ns));
        let rest = 1.0 - quantile;
        count += step.count_since_last_iteration();
        write!(out, "{value:>12.3} {quantile:>2.12} {count:>10}")?;
        if rest > 0.0 {
            writeln!(out, " {:>14.2}", 1.0 / rest)?;
        } else {
            // As Java's printer does: the last line has no fourth column.
            writeln!(out)?;
        }
    }
    let bins = &latency.bins;
    writeln!(
        out,
        "#[Mean    = {:>12.3}, StdDeviation   = {:>12.3}]",
        bins.mean() / 1000.0,
        bins.stdev() / 1000.0
    )?;
    writeln!(
        out,
        "#[Max     = {:>12.3}, Total count    = {:>12}]",
        us(latency.max_ns),
        latency.count()
    )?;
    writeln!(
        out,
        "#[Buckets = {:>12}, SubBuckets     = {:>12}]",
        bins.buckets(),
        2048
    )
}

/// Histograms collected for one file, written at the end: the percentile table where the name ends
/// in `.hgrm`, otherwise HdrHistogram's V2 interval log, one line for each interval, values in ns.
#[derive(Debug)]
pub struct LogWriter {
    path: PathBuf,
    file: File,
    start: SystemTime,
    intervals: Vec<(Duration, Duration, Latency)>,
}

impl LogWriter {
    /// Creates the file now, so that a run does not end with "permission denied".
    ///
    /// # Errors
    /// Where the file cannot be created.
    pub fn create(path: &Path) -> Result<LogWriter, OutputError> {
        let file = File::create(path).map_err(|source| OutputError::Io {
            path: path.to_owned(),
            source,
        })?;
        Ok(LogWriter {
            path: path.to_owned(),
            file,
            start: SystemTime::now(),
            intervals: Vec::new(),
        })
    }

    /// Times count from the start of the run.
    pub fn interval(&mut self, start: Duration, length: Duration, latency: Latency) {
        self.intervals.push((start, length, latency));
    }

    /// # Errors
    /// Where the file cannot be written, or a histogram not be encoded.
    pub fn finish(self) -> Result<(), OutputError> {
        let LogWriter {
            path,
            file,
            start,
            intervals,
        } = self;
        let mut out = BufWriter::new(file);
        let io = |source| OutputError::Io {
            path: path.clone(),
            source,
        };
        if path.extension().is_some_and(|ext| ext == "hgrm") {
            let mut whole = Latency::default();
            for (_, _, latency) in &intervals {
                whole.merge(latency);
            }
            percentile_table(&whole, &mut out).map_err(io)?;
        } else {
            let mut serializer = V2DeflateSerializer::new();
            let mut builder = IntervalLogWriterBuilder::new();
            builder.add_comment("[Histogram log format version 1.3]");
            builder.with_start_time(start).with_base_time(start);
            let mut log = builder
                .begin_log_with(&mut out, &mut serializer)
                .map_err(io)?;
            for (start, length, latency) in &intervals {
                log.write_histogram(&latency.bins, *start, *length, None::<Tag<'_>>)
                    .map_err(|reason| OutputError::Encode {
                        path: path.clone(),
                        reason: format!("{reason:?}"),
                    })?;
            }
        }
        out.flush().map_err(io)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    fn sample() -> Latency {
        let mut latency = Latency::default();
        (1..=1000).for_each(|us| latency.record(us * 1000));
        latency
    }

    #[test]
    fn the_table_ends_at_the_maximum_and_counts_all() {
        let mut out = Vec::new();
        percentile_table(&sample(), &mut out).expect("memory");
        let text = String::from_utf8(out).expect("text");
        let rows: Vec<Vec<f64>> = text
            .lines()
            .skip(2)
            .filter(|line| !line.starts_with('#'))
            .map(|line| {
                line.split_whitespace()
                    .map(|w| w.parse().expect("a number"))
                    .collect()
            })
            .collect();
        assert!(
            rows.windows(2)
                .all(|w| w[0][0] <= w[1][0] && w[0][1] <= w[1][1])
        );
        let last = rows.last().expect("rows");
        assert_eq!((last[0], last[1], last[2]), (1000.0, 1.0, 1000.0));
        assert_eq!(last.len(), 3, "no 1/(1-1)");
        assert!(text.contains("Total count    =         1000]"), "{text}");
    }

    #[test]
    fn the_log_has_an_entry_for_each_interval() {
        let path = std::env::temp_dir().join(format!("hopscope-{}.hlog", std::process::id()));
        let mut log = LogWriter::create(&path).expect("the temporary directory is writable");
        for second in 0..3 {
            log.interval(
                Duration::from_secs(second),
                Duration::from_secs(1),
                sample(),
            );
        }
        log.finish().expect("written");
        let bytes = std::fs::read(&path).expect("just written");
        std::fs::remove_file(&path).expect("ours");
        let entries = IntervalLogIterator::new(&bytes)
            .filter(|entry| matches!(entry, Ok(LogEntry::Interval(_))))
            .count();
        assert_eq!(entries, 3);
        assert!(bytes.starts_with(b"#[Histogram log format version 1.3]"));
    }
}
