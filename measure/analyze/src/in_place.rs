//! What a measured call costs in the program itself, from pairs of equal windows with its probes on and
//! off, in random order: the difference of the time that a call takes its thread.
//!
//! A drift of the load is in both windows of a pair and so in neither's favour; what changes within a
//! pair makes the interval wide. Where a thread works at the pace of its load and spins meanwhile,
//! its calls do not become more when they cost less: that looks as if probes cost nothing, and is
//! recognized by a cost below what stamps take anywhere.

/// One thread in one window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    pub thread: u32,
    pub pair: u32,
    pub on: bool,
    /// That the thread ran.
    pub ticks: f64,
    pub calls: f64,
    /// Of these, calls that were measured: all with probes on, none with probes off.
    pub measured: f64,
}

/// Why the windows say nothing.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum Unusable {
    #[error("{pairs} pairs of windows with calls in both: at least {PAIRS_MIN} say something")]
    TooFew { pairs: usize },
    #[error("{percent:.0} % of the calls could not be switched off")]
    NotSwitched { percent: f64 },
    #[error("the load was not steady: {low:.0} to {high:.0} ticks a call")]
    NotSteady { low: f64, high: f64 },
    #[error(
        "calls did not become more while they cost less ({ticks:.0} ticks a call): the load is paced, not as fast as it can be"
    )]
    Paced { ticks: f64 },
}

pub const PAIRS_MIN: usize = 8;
/// Fewer calls of a thread in a window say nothing.
const CALLS_MIN: f64 = 50.0;
const NOT_SWITCHED_PERCENT: f64 = 2.0;
/// Of the interval, either side of the median, as a part of it.
const STEADY: f64 = 0.5;
/// Of what a pair costs in a loop, where it is throughput that counts: less is no cost of stamps.
const LEAST_PART: f64 = 0.4;

/// Lowest, median, highest ticks that a call adds, and the pairs behind them: the median of the pairs
/// with its exact interval (95 %, order statistics). `loop_ticks`: what a pair costs in a loop;
/// `off_ticks`: what a call costs with its probes off.
///
/// # Errors
/// When the windows allow no answer.
pub fn estimate(
    windows: &[Window],
    loop_ticks: f64,
    off_ticks: [f64; 3],
) -> Result<([f64; 3], usize), Unusable> {
    let pairs = windows.iter().map(|w| w.pair + 1).max().unwrap_or(0);
    let mut added: Vec<f64> = (0..pairs).filter_map(|n| added(windows, n)).collect();
    added.sort_by(f64::total_cmp);
    let pairs = added.len();
    if pairs < PAIRS_MIN {
        return Err(Unusable::TooFew { pairs });
    }
    let sum = |of: fn(&Window) -> f64| -> f64 { windows.iter().filter(|w| !w.on).map(of).sum() };
    let percent = 100.0 * sum(|w| w.measured) / sum(|w| w.calls).max(1.0);
    if percent > NOT_SWITCHED_PERCENT {
        return Err(Unusable::NotSwitched { percent });
    }
    let out = outside(pairs);
    let middle = (added[(pairs - 1) / 2] + added[pairs / 2]) / 2.0;
    let (low, high) = (added[out], added[pairs - 1 - out]);
    if high < LEAST_PART * loop_ticks {
        return Err(Unusable::Paced { ticks: middle });
    }
    if low < middle * (1.0 - STEADY) || high > middle * (1.0 + STEADY) {
        return Err(Unusable::NotSteady { low, high });
    }
    Ok((
        [
            low + off_ticks[0],
            middle + off_ticks[1],
            high + off_ticks[2],
        ],
        pairs,
    ))
}

/// Of one pair: all threads with calls in both windows together, each as its calls weigh.
fn added(windows: &[Window], pair: u32) -> Option<f64> {
    let of = |on: bool| {
        let those = windows.iter().filter(move |w| w.pair == pair && w.on == on);
        those.filter(|w| w.calls >= CALLS_MIN && w.ticks > 0.0)
    };
    let (mut ticks, mut calls) = (0.0, 0.0);
    for on in of(true) {
        let Some(off) = of(false).find(|w| w.thread == on.thread) else {
            continue;
        };
        ticks += on.ticks - on.calls * off.ticks / off.calls;
        calls += on.calls;
    }
    (calls > 0.0).then(|| ticks / calls)
}

/// How many of `n` lie outside of the median's interval at either end: the median is below the k-th
/// smallest with the chance of fewer than k heads of n tosses.
fn outside(n: usize) -> usize {
    let (mut chance, mut below, mut k) = (0.5f64.powi(n as i32), 0.0, 0);
    while below + chance <= 0.025 {
        below += chance;
        chance *= (n - k) as f64 / (k + 1) as f64;
        k += 1;
    }
    k.saturating_sub(1)
}

#[cfg(test)]
mod tests;
