//! What measuring does to the latency of each packet: the firewall between two cables, bursts at low
//! load, bare and with its ten modules measured, in turn. A packet's place in its burst decides how
//! long it waits for those before it: that shape must stay.
use crate::Settings;
use crate::error::{Error, Result};
use crate::function::{Cabled, MODULES, Processors};
use crate::hopscope::Hopscope;
use hopscope_compare::comparison::Comparison;
use hopscope_compare::interleave::{Runs, Side, interleave};
use hopscope_compare::stats::Spread;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// Sent together, and as many as the firewall takes at once.
const BURST: usize = 32;
const PER_SECOND: &str = "20k";

#[derive(Debug, Clone, Serialize)]
pub(super) struct Latency {
    /// Mean transit of all packets, bare against measured; the control is bare against bare.
    mean: Comparison,
    /// The same with the cost of a run's probes taken off each measured packet.
    pub(super) corrected_ratio: f64,
    correction_ns: f64,
    /// Spearman's, of median transit by place in the burst: median of rounds.
    pub(super) rank_correlation: f64,
    /// Bare against bare: what noise leaves of it.
    pub(super) rank_correlation_control: f64,
    lost_percent: f64,
}

impl Latency {
    pub(super) fn text(&self) -> String {
        format!(
            "latency through the firewall, bursts of {BURST}, its ten modules measured: mean {:.1} us bare, {:.1} us measured\n{}\n\
             corrected by {:.0} ns: {:.3} times the bare mean; rank correlation by place in the burst {:.3} (bare with bare {:.3})\n",
            self.mean.a.median / 1e3,
            self.mean.b.median / 1e3,
            self.mean,
            self.correction_ns,
            self.corrected_ratio,
            self.rank_correlation,
            self.rank_correlation_control,
        )
    }
}

/// One run: mean transit, and the median of each place in the burst.
struct Transit {
    mean_ns: f64,
    by_place_ns: Vec<f64>,
    lost_percent: f64,
}

pub(super) fn measure(
    settings: &Settings,
    hopscope: &Hopscope,
    processors: &Processors,
    demo: Option<&PathBuf>,
) -> Result<Latency> {
    let mut nf = Cabled::start(settings, processors, demo, "density", &[])?;
    through(settings, hopscope, &nf).map_err(|error| nf.blamed(error))
}

fn through(settings: &Settings, hopscope: &Hopscope, nf: &Cabled) -> Result<Latency> {
    let rounds = settings.pick(6, 6, 15);
    let packets = settings.pick(1_000, 10_000, 40_000);
    let mut places: [Vec<Vec<f64>>; 3] = Default::default();
    let (mut corrections, mut lost) = (Vec::new(), Vec::new());
    let module = |name: &&str| format!("*!{name}");
    let patterns: Vec<String> = MODULES.iter().map(module).collect();
    let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
    let runs: Runs = interleave(rounds, |round, side| {
        settings.say(&format!("latency, {} of {rounds}", round + 1));
        // What a probe costs is asked once where all is to be as short as it can.
        let is_calibrated = round == 0 || !settings.least;
        let options: &[&str] = if is_calibrated {
            &[]
        } else {
            &["--no-calibration"]
        };
        let recording = match side {
            Side::B => Some(hopscope.record(nf.pid(), &patterns, options)?),
            Side::A | Side::Control => None,
        };
        let transit = one(nf, packets)?;
        if let Some(recording) = recording {
            let recorded = recording.stop()?;
            if is_calibrated {
                corrections.push(probes_of_a_run_ns(hopscope, &recorded.file)?);
            }
            recorded.discard()?;
        }
        lost.push(transit.lost_percent);
        places[side as usize].push(transit.by_place_ns);
        Ok::<_, Error>(transit.mean_ns)
    })?;
    let correlation = |with: Side| {
        let pairs = places[Side::A as usize].iter().zip(&places[with as usize]);
        let each: Vec<f64> = pairs.filter_map(|(a, b)| spearman(a, b)).collect();
        Spread::of(&each).map_or(f64::NAN, |s| s.median)
    };
    let mean = Comparison::of(&runs)?;
    let correction_ns = Spread::of(&corrections).map_or(0.0, |s| s.median);
    Ok(Latency {
        mean,
        corrected_ratio: mean.ratio.estimate * (mean.b.median - correction_ns) / mean.b.median,
        correction_ns,
        rank_correlation: correlation(Side::B),
        rank_correlation_control: correlation(Side::Control),
        lost_percent: Spread::of(&lost).map_or(0.0, |s| s.median),
    })
}

fn one(nf: &Cabled, packets: u32) -> Result<Transit> {
    let rows = nf.dir.join("rows.csv");
    let path = rows.display().to_string();
    nf.load(&[
        "--rate",
        PER_SECOND,
        "--arrivals",
        &format!("burst:{BURST}"),
        "--count",
        &packets.to_string(),
        "--packets",
        &path,
    ])?;
    let text = fs::read_to_string(&rows).map_err(Error::file("read", &rows))?;
    transit(&text).ok_or(Error::Nothing {
        what: "the firewall between two cables",
    })
}

/// From the rows of `load packets`. Denied packets are lost, always the same.
fn transit(rows: &str) -> Option<Transit> {
    let mut lines = rows.lines();
    let header: Vec<&str> = lines.next()?.split(',').collect();
    let column = |name: &str| header.iter().position(|h| *h == name);
    let (seq, transit) = (column("seq")?, column("transit_ns")?);
    let mut by_place = vec![Vec::new(); BURST];
    let (mut sum, mut arrived, mut sent) = (0.0, 0.0, 0.0);
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        sent += 1.0;
        let Ok(ns) = fields.get(transit)?.parse::<f64>() else {
            continue;
        };
        let seq: usize = fields.get(seq)?.parse().ok()?;
        by_place[seq % BURST].push(ns);
        sum += ns;
        arrived += 1.0;
    }
    let places = by_place.iter().map(|p| Some(Spread::of(p)?.median));
    Some(Transit {
        mean_ns: sum / arrived,
        by_place_ns: places.collect::<Option<_>>()?,
        lost_percent: 100.0 * (sent - arrived) / sent,
    })
}

/// What the probes of one pass through the modules cost, as the recording itself has measured it.
fn probes_of_a_run_ns(hopscope: &Hopscope, file: &Path) -> Result<f64> {
    let path = file.display().to_string();
    let said = hopscope.ask(&["report", &path, "--json"])?;
    let line = said.lines().next().unwrap_or_default();
    let object: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
    let meta = &object["meta"];
    let pair = meta["probe_cost"]["pair_ticks"][1].as_f64();
    let hz = meta["tsc_frequency"].as_f64();
    match (pair, hz) {
        (Some(pair), Some(hz)) => Ok(MODULES.len() as f64 * pair / hz * 1e9),
        _ => Err(Error::no_field(
            "hopscope report --json",
            "meta.probe_cost.pair_ticks",
            line,
        )),
    }
}

/// Spearman's rank correlation; equal values share their middle rank. `None` when one side has a
/// single value only.
fn spearman(a: &[f64], b: &[f64]) -> Option<f64> {
    let (a, b) = (ranks(a), ranks(b));
    let mean = (a.len() as f64 + 1.0) / 2.0;
    let product = |x: &[f64], y: &[f64]| -> f64 {
        x.iter().zip(y).map(|(x, y)| (x - mean) * (y - mean)).sum()
    };
    let both = (product(&a, &a) * product(&b, &b)).sqrt();
    (both > 0.0).then(|| product(&a, &b) / both)
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |v: &f64| {
        let below = values.iter().filter(|w| *w < v).count();
        let equal = values.iter().filter(|w| *w == v).count();
        below as f64 + (equal as f64 + 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_decide_not_values() {
        let a = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(spearman(&a, &[10.0, 20.0, 300.0, 4000.0]), Some(1.0));
        assert_eq!(spearman(&a, &[4.0, 3.0, 2.0, 1.0]), Some(-1.0));
        assert_eq!(spearman(&a, &[1.0, 1.0, 1.0, 1.0]), None);
        assert_eq!(ranks(&[5.0, 1.0, 5.0]), [2.5, 1.0, 2.5]);
    }

    #[test]
    fn lost_packets_are_in_no_mean() {
        let mut rows = String::from("seq,flow,transit_ns,flags\n");
        for seq in 0..BURST {
            rows += &format!("{seq},0,{},-\n", 100 + seq);
        }
        rows += "32,0,,lost\n";
        let transit = transit(&rows).unwrap();
        assert_eq!(transit.mean_ns, 115.5);
        assert_eq!(
            (transit.by_place_ns[0], transit.by_place_ns[31]),
            (100.0, 131.0)
        );
        assert!((transit.lost_percent - 100.0 / 33.0).abs() < 1e-9);
    }
}
