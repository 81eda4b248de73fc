//! The same way of the same packets, looked at with 2, 4, 8 and 16 hooks: what lies between the outermost
//! two must not depend on how many lie between them.
use super::Bench;
use super::traffic::{HEADERS, Route};
use crate::error::{Error, Result};
use hopscope_compare::stats::Spread;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;

const FRAME_BYTES: u32 = 64;

/// The outermost points: with fewer, no record of the reader's side comes to an end.
const FIRST: &str = "tx_ip_out";
const LAST: &str = "rx_transport";
const OUTER: &str = "outer";

/// Points of a packet's way through a device without a queue, in order, each with the fewest hooks of
/// a configuration that has it. So many lie between the two only if some lie outside as well.
const POINTS: [(&str, usize); 16] = [
    ("tx_syscall", 16),
    ("tx_transport", 16),
    (FIRST, 2),
    ("tx_dev_queue", 8),
    ("tx_driver", 4),
    ("rx_driver", 8),
    ("tx_done", 8),
    ("rx_core", 4),
    ("rx_ip", 8),
    (LAST, 2),
    ("rx_socket", 16),
    ("rx_waking", 16),
    ("rx_sched_in", 16),
    ("rx_copy", 16),
    ("rx_copied", 16),
    ("rx_return", 16),
];
const HOOKS: [usize; 4] = [2, 4, 8, 16];

/// Times in ns, medians of the packets of a run, by number of hooks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Flat {
    pub(crate) corrected_ns: BTreeMap<usize, Spread>,
    /// The largest of the medians over the smallest.
    pub(crate) ratio: f64,
    /// The same of the last and the first half of the runs with the fewest hooks: noise alone.
    pub(crate) control_ratio: f64,
    /// Round trips meanwhile, which nothing is taken off.
    pub(crate) rtt_ns: BTreeMap<usize, Spread>,
}

fn chain(hooks: usize) -> Vec<&'static str> {
    let within = POINTS.iter().filter(|(_, fewest)| *fewest <= hooks);
    within.map(|(name, _)| *name).collect()
}

fn regions(hooks: usize) -> String {
    let points = chain(hooks);
    let lines = points
        .windows(2)
        .enumerate()
        .map(|(n, pair)| format!("s{n} = {} .. {}\n", pair[0], pair[1]));
    let lines: String = lines.collect();
    format!("{lines}{OUTER} = {FIRST} .. {LAST}\n")
}

pub(crate) fn measure(bench: &mut Bench<'_, '_>) -> Result<Flat> {
    let route = Route::cable()?;
    let mut connection = route.connect(&bench.programs, FRAME_BYTES - HEADERS)?;
    let filter = format!("tcp port {}", connection.port());
    let nothing = || Error::Nothing {
        what: "packets with 2 to 16 hooks",
    };
    let mut corrected: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    let mut rtt = corrected.clone();
    let mut files = BTreeMap::new();
    for hooks in HOOKS {
        let file = bench.slicer.regions(&format!("{hooks}"), &regions(hooks))?;
        files.insert(hooks, file);
    }
    for round in 0..bench.settings.pick(2, bench.rounds, bench.rounds) {
        bench.say("2 to 16 hooks", round);
        for at in 0..HOOKS.len() {
            // Each has each place equally often.
            let hooks = HOOKS[(round + at) % HOOKS.len()];
            let attached = bench.slicer.attach(&files[&hooks], &[], &filter)?;
            let window = connection.run(bench.milliseconds)?;
            let closing = attached.detach()?;
            closing.packets()?;
            let outer = closing.p50_ns(OUTER).ok_or_else(nothing)?;
            corrected.entry(hooks).or_default().push(outer);
            rtt.entry(hooks).or_default().push(window.p50_ns);
            bench.sample(json!({
                "what": "outer", "hooks": hooks, "round": round, "corrected_p50_ns": outer,
                "hits_per_packet": closing.hits_per_packet()?, "rtt_p50_ns": window.p50_ns,
            }))?;
        }
    }
    let few = &corrected[&HOOKS[0]];
    let halves = few.split_at(few.len() / 2);
    let half = |values: &[f64]| Spread::of(values).map(|s| s.median).ok_or_else(nothing);
    let halves = [half(halves.0)?, half(halves.1)?];
    let spreads = |of: BTreeMap<usize, Vec<f64>>| {
        let each = of
            .into_iter()
            .map(|(n, values)| Some((n, Spread::of(&values)?)));
        each.collect::<Option<BTreeMap<_, _>>>().ok_or_else(nothing)
    };
    let corrected_ns = spreads(corrected)?;
    let medians: Vec<f64> = corrected_ns.values().map(|s| s.median).collect();
    Ok(Flat {
        ratio: largest_over_smallest(&medians),
        control_ratio: largest_over_smallest(&halves),
        corrected_ns,
        rtt_ns: spreads(rtt)?,
    })
}

fn largest_over_smallest(values: &[f64]) -> f64 {
    let largest = values.iter().copied().fold(f64::MIN, f64::max);
    largest / values.iter().copied().fold(f64::MAX, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_configuration_has_its_number_of_points_and_the_same_ends() {
        for hooks in HOOKS {
            let chain = chain(hooks);
            assert_eq!(chain.len(), hooks);
            assert!(chain.contains(&FIRST) && chain.contains(&LAST));
            assert_eq!(regions(hooks).lines().count(), hooks);
        }
    }

    #[test]
    fn flat_is_one() {
        assert_eq!(largest_over_smallest(&[3.0, 3.0]), 1.0);
        assert_eq!(largest_over_smallest(&[3.0, 6.0, 4.0]), 2.0);
    }
}
