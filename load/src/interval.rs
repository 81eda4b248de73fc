//! The line of each second: what was asked, what was done, and the latency of it.
use hopscope_openloop::latency::{Latency, Percentiles};
use serde::Serialize;
use std::time::Duration;

/// What happened between two lines. Counts are of this interval only.
#[derive(Debug, Clone, Default)]
pub struct Interval {
    pub start: Duration,
    pub length: Duration,
    pub warmup: bool,
    /// Intended times that passed.
    pub asked: u64,
    pub done: u64,
    /// Lost, refused, timed out or wrong.
    pub failed: u64,
    /// Sent late although nothing but the generator itself was in the way.
    pub behind: u64,
    pub latency: Latency,
}

#[derive(Serialize)]
struct Line {
    r#type: &'static str,
    schema: u32,
    start_s: f64,
    length_s: f64,
    warmup: bool,
    asked_per_s: f64,
    achieved_per_s: f64,
    failed: u64,
    behind_share: f64,
    latency: Percentiles,
}

impl Interval {
    pub fn json(&self) -> serde_json::Value {
        let line = Line {
            r#type: "interval",
            schema: 1,
            start_s: self.start.as_secs_f64(),
            length_s: self.length.as_secs_f64(),
            warmup: self.warmup,
            asked_per_s: self.per_s(self.asked),
            achieved_per_s: self.per_s(self.done),
            failed: self.failed,
            behind_share: share(self.behind, self.asked),
            latency: self.latency.percentiles(),
        };
        serde_json::to_value(line).expect("numbers, names and no maps")
    }

    /// `   3 s  asked 10000/s  achieved 9998/s  failed 0  p50 21.4 us  p99 80.1 us`; a percentile
    /// that the generator itself may have spoilt carries a `~`.
    pub fn text(&self) -> String {
        let figures = self.latency.percentiles();
        let behind = share(self.behind, self.asked);
        let mut line = format!(
            "{:>4.0} s  asked {:.0}/s  achieved {:.0}/s  failed {}  p50 {}  p99 {}",
            (self.start + self.length).as_secs_f64(),
            self.per_s(self.asked),
            self.per_s(self.done),
            self.failed,
            marked(figures.p50_ns, 0.5, behind),
            marked(figures.p99_ns, 0.99, behind),
        );
        if behind > 0.0 {
            line += &format!("  fell behind {:.2} %", behind * 100.0);
        }
        if self.warmup {
            line += "  (warm-up)";
        }
        line
    }

    fn per_s(&self, count: u64) -> f64 {
        if self.length.is_zero() {
            0.0
        } else {
            count as f64 / self.length.as_secs_f64()
        }
    }
}

/// `part` of `whole`, 0 where there is nothing.
pub fn share(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        whole => part as f64 / whole as f64,
    }
}

/// Whether late sending alone could have moved this quantile: as many requests were sent late as
/// lie above it.
pub fn spoilt(quantile: f64, behind_share: f64) -> bool {
    behind_share > 0.0 && behind_share >= 1.0 - quantile
}

/// A latency with its unit, and `~` where it is spoilt; `-` where there is none.
pub fn marked(ns: Option<u64>, quantile: f64, behind_share: f64) -> String {
    let mark = if spoilt(quantile, behind_share) {
        "~"
    } else {
        ""
    };
    ns.map_or("-".into(), |ns| format!("{mark}{}", time(ns)))
}

/// Three or four digits and a unit.
pub fn time(ns: u64) -> String {
    let value = ns as f64;
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} us", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} ms", value / 1e6),
        _ => format!("{:.3} s", value / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_second() {
        let mut interval = Interval {
            start: Duration::from_secs(2),
            length: Duration::from_secs(1),
            asked: 1000,
            done: 999,
            failed: 1,
            behind: 20,
            ..Interval::default()
        };
        interval.latency.record_n(20_000, 999);
        assert_eq!(
            interval.text(),
            "   3 s  asked 1000/s  achieved 999/s  failed 1  p50 20.0 us  p99 ~20.0 us  \
             fell behind 2.00 %"
        );
        let json = interval.json();
        assert_eq!(
            (&json["type"], &json["schema"]),
            (&"interval".into(), &1.into())
        );
        assert_eq!(json["latency"]["p99_ns"], 20_000);
    }

    #[test]
    fn a_percentile_is_spoilt_by_as_many_as_lie_above_it() {
        assert!(!spoilt(0.5, 0.01) && !spoilt(0.99, 0.009) && !spoilt(1.0, 0.0));
        assert!(spoilt(0.99, 0.02) && spoilt(0.5, 0.6) && spoilt(1.0, 1e-9));
    }
}
