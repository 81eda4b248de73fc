//! What the charts show: distributions, and rates and latency over the time of the recording.
use super::overview::{Bin, Overview};
use super::svg::{Axis, Plot};
use crate::units::{Scale, TimeUnit, grouped, ns_text};
use hopscope_analyze::{Distribution, Quantile};
use hopscope_event::TscFrequency;

const BARS: usize = 72;
/// Points of a line over time.
const POINTS: usize = 160;

fn ns(frequency: TscFrequency) -> impl Fn(u64) -> f64 {
    let scale = Scale::new(TimeUnit::Ns, frequency);
    move |ticks| scale.number(i128::from(ticks))
}

/// At a tick: without the digits that say nothing there.
fn round_time(ns: f64) -> String {
    let text = ns_text(ns);
    let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
    let number = if number.contains('.') {
        number.trim_end_matches('0').trim_end_matches('.')
    } else {
        number
    };
    format!("{number} {unit}")
}

/// At a tick: 50 k, 1.5 M.
fn short(count: f64) -> String {
    let (value, unit) = match count {
        c if c >= 1e9 => (c / 1e9, " G"),
        c if c >= 1e6 => (c / 1e6, " M"),
        c if c >= 1e4 => (c / 1e3, " k"),
        c => (c, ""),
    };
    // Ticks are round: what follows the third digit is not theirs.
    format!("{}{unit}", (value * 1e3).round() / 1e3)
}

/// How many took how long; both axes logarithmic, so that a tail of a few packets is seen.
pub(crate) fn histogram(title: &str, d: &Distribution, frequency: TscFrequency) -> String {
    let ns = ns(frequency);
    let bins: Vec<(f64, u64)> = d
        .bins()
        .map(|(low, high, n)| (ns(low.midpoint(high)).max(0.1), n))
        .collect();
    let (Some(first), Some(last)) = (bins.first(), bins.last()) else {
        return String::new();
    };
    let x = Axis::log(first.0, last.0 * 1.001);
    let mut bars = [0u64; BARS];
    let span = (x.high / x.low).ln();
    for (value, n) in &bins {
        let part = (value / x.low).ln() / span;
        bars[((part * BARS as f64) as usize).min(BARS - 1)] += n;
    }
    let most = bars.iter().max().copied().unwrap_or(1) as f64;
    let y = Axis {
        low: 0.5,
        high: (most * 1.5).max(2.0),
        log: true,
    };
    let mut plot = Plot::new(title, (x, &round_time), (y, &short));
    for (at, n) in bars.iter().enumerate().filter(|(_, n)| **n > 0) {
        let edge = |at: usize| x.low * (span * at as f64 / BARS as f64).exp();
        plot.bar("bar", edge(at), edge(at + 1), *n as f64);
    }
    for (parts, word) in [(500, "p50"), (990, "p99"), (999, "p99.9")] {
        if let Quantile::Ticks(ticks) = d.quantile(parts) {
            plot.mark(ns(ticks), word);
        }
    }
    plot.finish()
}

type Of = fn(&Bin) -> u64;

/// Packets, or calls, a second.
pub(crate) fn rate(overview: &Overview, frequency: TscFrequency) -> String {
    let packets: &[(&str, &str, Of)] = &[
        ("first", "sent", |b| b.sent),
        ("second", "received", |b| b.received),
        ("bad", "lost", |b| b.lost),
    ];
    let calls: &[(&str, &str, Of)] = &[("first", "calls", |b| b.calls)];
    let (title, lines) = if overview.packets > 0 {
        ("packets/s over time", packets)
    } else {
        ("calls/s over time", calls)
    };
    let (bins, width) = overview.coarser(POINTS);
    let per_s = |at: usize, n: u64| {
        let span = overview
            .ticks()
            .saturating_sub(at as u64 * width)
            .min(width);
        // The last part of the time may be too short to have a rate.
        (span * 4 >= width).then(|| n as f64 * frequency.0 as f64 / span.max(1) as f64)
    };
    let each = |of: &Of| {
        let of = *of;
        bins.iter().enumerate().map(move |(at, bin)| (at, of(bin)))
    };
    let all = lines.iter().flat_map(|(_, _, of)| each(of));
    let most = all.filter_map(|(at, n)| per_s(at, n)).fold(0.0, f64::max);
    let mut plot = time_plot(title, overview, frequency, (Axis::linear(most), &short));
    for (class, _, of) in lines {
        let points = each(of).map(|(at, n)| (middle(width, frequency, at), per_s(at, n)));
        plot.line(class, points);
    }
    let legend: Vec<_> = lines
        .iter()
        .map(|(class, word, _)| (*class, *word))
        .collect();
    plot.legend(&legend);
    plot.finish()
}

/// Median, 99th percentile and maximum of each part's packets, by when they should have left.
pub(crate) fn latency(overview: &Overview, frequency: TscFrequency) -> String {
    let ns = ns(frequency);
    let (bins, width) = overview.coarser(POINTS);
    let range = |parts| bins.iter().filter_map(move |b| b.quantile(parts));
    let (Some(low), Some(high)) = (range(500).min(), range(1000).max()) else {
        return String::new();
    };
    let y = Axis::log(ns(low.max(1)) / 1.3, ns(high.max(1)) * 1.1);
    let title = "latency over time (each point: all packets of that part of the time)";
    let mut plot = time_plot(title, overview, frequency, (y, &round_time));
    for (class, parts) in [("bad", 1000), ("second", 990), ("first", 500)] {
        let points = bins.iter().enumerate();
        plot.line(
            class,
            points.map(|(at, bin)| (middle(width, frequency, at), bin.quantile(parts).map(&ns))),
        );
    }
    plot.legend(&[("first", "p50"), ("second", "p99"), ("bad", "max")]);
    plot.finish()
}

fn middle(width: u64, frequency: TscFrequency, at: usize) -> f64 {
    (at as f64 + 0.5) * width as f64 * 1e9 / frequency.0.max(1) as f64
}

fn time_plot(
    title: &str,
    overview: &Overview,
    frequency: TscFrequency,
    y: (Axis, &dyn Fn(f64) -> String),
) -> Plot {
    let x = Axis {
        low: 0.0,
        high: (overview.ticks() as f64 * 1e9 / frequency.0.max(1) as f64).max(1.0),
        log: false,
    };
    Plot::new(title, (x, &round_time), y)
}

/// A bar as wide as its part of a whole.
pub(crate) fn share(part: i128, whole: i128) -> String {
    let percent = if whole > 0 {
        (part as f64 * 100.0 / whole as f64).clamp(0.0, 100.0)
    } else {
        0.0
    };
    format!(
        "<svg class=share viewBox=\"0 0 100 8\" preserveAspectRatio=none aria-hidden=true>\
         <rect class=bar width={percent:.1} height=8 /></svg>"
    )
}

/// How many, for people.
pub(crate) fn count(n: u64) -> String {
    grouped(n)
}
