//! The lines of `--raw`: for each interval those functions that were called, and a line of losses.
use super::live::Snapshot;
use super::table::{RowChoice, rows};
use hopscope_analyze::Quantile;
use hopscope_report::Scale;
use serde_json::{Value, json};
use std::io::{self, Write};

pub struct Lines {
    pub scale: Scale,
    pub json: bool,
    pub corrected: bool,
}

impl Lines {
    pub fn titles(&self, out: &mut impl Write) -> io::Result<()> {
        if self.json {
            return Ok(());
        }
        let times = if self.corrected { "corrected" } else { "raw" };
        writeln!(
            out,
            "# seconds\tcalls/s\tshare_percent\tp50_ns\tp99_ns\tmax_ns\tcalls\tfunction\t(times {times})"
        )
    }

    pub fn interval(
        &self,
        out: &mut impl Write,
        snapshot: &Snapshot,
        choice: &RowChoice,
    ) -> io::Result<()> {
        for row in rows(snapshot, choice) {
            let n = row.numbers;
            if n.calls == 0 {
                continue;
            }
            let name = &snapshot.names[row.at];
            let ns = |quantile| match quantile {
                Quantile::Ticks(ticks) => Some(self.scale.number(i128::from(ticks))),
                Quantile::Empty | Quantile::Negative => None,
            };
            if self.json {
                let line = json!({
                    "type": "function", "schema": 1, "seconds": round(snapshot.since_start_s),
                    "interval_s": round(snapshot.span_s), "module": name.module,
                    "function": name.function, "calls": n.calls,
                    "calls_per_s": row.calls_per_s.round(),
                    "share_percent": round(row.share * 100.0),
                    "self_ns": self.scale.number(n.own_ticks), "p50_ns": ns(n.p50),
                    "p99_ns": ns(n.p99), "max_ns": ns(n.max), "corrected": self.corrected,
                });
                writeln!(out, "{line}")?;
                continue;
            }
            let text = |quantile| ns(quantile).map_or("-".to_owned(), |ns| format!("{ns:.1}"));
            writeln!(
                out,
                "{:.3}\t{:.0}\t{:.2}\t{}\t{}\t{}\t{}\t{}!{}",
                snapshot.since_start_s,
                row.calls_per_s,
                row.share * 100.0,
                text(n.p50),
                text(n.p99),
                text(n.max),
                n.calls,
                name.module,
                name.function
            )?;
        }
        self.losses(out, snapshot)?;
        out.flush()
    }

    fn losses(&self, out: &mut impl Write, s: &Snapshot) -> io::Result<()> {
        if self.json {
            return writeln!(out, "{}", losses(s));
        }
        writeln!(
            out,
            "# {:.3} s: {} records, {} lost ({} since the start), {} torn, {} calls unmeasured{}",
            s.since_start_s,
            s.records,
            s.lost,
            s.lost_whole,
            s.torn_whole,
            s.calls_unmeasured,
            s.moved_text()
        )
    }
}

fn losses(s: &Snapshot) -> Value {
    json!({
        "type": "interval", "schema": 1, "seconds": round(s.since_start_s),
        "interval_s": round(s.span_s), "records": s.records, "lost": s.lost,
        "lost_whole": s.lost_whole, "torn_whole": s.torn_whole,
        "moved_whole": s.moved_whole, "calls_unmeasured": s.calls_unmeasured, "threads": s.threads,
        "slowdown_percent": s.slowdown_percent,
    })
}

fn round(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}
