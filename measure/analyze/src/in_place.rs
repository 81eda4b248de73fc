//! What a measured call costs in the program itself, from pairs of windows with its probes on and off,
//! in random order: the difference of the time that a call takes its thread.
//!
//! A drift of the load is in both windows of a pair and favours neither; what changes within a pair
//! makes the interval wide. Where a thread polls at the pace of its load, its polls become more when
//! they cost less, and other calls do not: then the shares of the functions differ with probes and
//! without, and a difference of means says nothing of the cost.
use hopscope_event::layout::OFF_CLASSES;

/// One thread in one window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    pub thread: u32,
    pub pair: u32,
    pub on: bool,
    /// Processor time of the thread.
    pub ticks: f64,
    /// By class of function ([`hopscope_event::layout::off_class`]).
    pub calls: [f64; OFF_CLASSES],
    /// Of these, calls that were measured: all with probes on; with probes off, those of functions
    /// that cannot be switched.
    pub measured: f64,
}

impl Window {
    fn all_calls(&self) -> f64 {
        self.calls.iter().sum()
    }
}

/// Costs in ticks that were measured elsewhere.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Known {
    /// Of a call in a loop.
    pub in_a_loop: [f64; 3],
    /// The most that a call costs where it misses the caches; `None`: not measured.
    pub most: Option<f64>,
    /// Of a call with its probes off (lowest, median, highest).
    pub off: [f64; 3],
}

/// What the windows say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// Ticks that a call adds, mean of all calls: lowest, median, highest.
    pub call_ticks: [f64; 3],
    /// Pairs of windows behind it.
    pub pairs: usize,
    /// Of the calls, those of functions that cannot be switched off.
    pub not_switched_percent: f64,
}

/// Why the windows say nothing.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum Unusable {
    #[error("{pairs} pairs of windows with enough calls in both; {PAIRS_MIN} are needed")]
    TooFew { pairs: usize },
    #[error("{percent:.0} % of the calls are of functions whose probes cannot be switched off")]
    NotSwitched { percent: f64 },
    #[error("the load was not steady: a call costs {low:.0} to {high:.0} ticks more with probes")]
    NotSteady { low: f64, high: f64 },
    #[error(
        "the shares of the functions differ by {percent:.1} % with probes and without: the program does not do the same work in both"
    )]
    OtherCalls { percent: f64 },
    #[error(
        "calls became no slower with probes ({ticks:.0} ticks): the program works at the pace of its load, not as fast as it can"
    )]
    Paced { ticks: f64 },
}

pub const PAIRS_MIN: usize = 8;
/// Above it, the interval's ends are those of a normal distribution.
const EXACT_PAIRS: usize = 400;
/// Fewer calls of a thread in a window say nothing.
const CALLS_MIN: f64 = 50.0;
const NOT_SWITCHED_PERCENT: f64 = 25.0;
/// Of all calls, those that would have to be of another class to have the same shares.
const OTHER_CALLS_PERCENT: f64 = 2.0;
/// Of the interval, either side of the median, as a part of it.
const STEADY: f64 = 0.5;
/// Of what a pair costs in a loop, where it is throughput that counts: less is no cost of stamps.
const LEAST_PART: f64 = 0.4;

/// The median of the pairs with its exact interval (95 %, order statistics), and what calls cost with
/// their probes off on top of it.
///
/// # Errors
/// When the windows allow no answer.
pub fn estimate(windows: &[Window], known: &Known) -> Result<Found, Unusable> {
    let pairs = windows.iter().map(|w| w.pair + 1).max().unwrap_or(0);
    let mut added: Vec<f64> = (0..pairs).filter_map(|n| added(windows, n)).collect();
    added.sort_by(f64::total_cmp);
    let pairs = added.len();
    if pairs < PAIRS_MIN {
        return Err(Unusable::TooFew { pairs });
    }
    let sum = |on: bool, of: fn(&Window) -> f64| -> f64 {
        windows.iter().filter(|w| w.on == on).map(of).sum()
    };
    let part = sum(false, |w| w.measured) / sum(false, Window::all_calls).max(1.0);
    let not_switched_percent = 100.0 * part;
    if not_switched_percent > NOT_SWITCHED_PERCENT {
        return Err(Unusable::NotSwitched {
            percent: not_switched_percent,
        });
    }
    let other = other_calls(windows);
    if 100.0 * other > OTHER_CALLS_PERCENT {
        return Err(Unusable::OtherCalls {
            percent: 100.0 * other,
        });
    }
    let out = outside(pairs);
    let middle = (added[(pairs - 1) / 2] + added[pairs / 2]) / 2.0;
    let (low, high) = (added[out], added[pairs - 1 - out]);
    if high < LEAST_PART * known.in_a_loop[1] {
        return Err(Unusable::Paced { ticks: middle });
    }
    if low < middle * (1.0 - STEADY) || high > middle * (1.0 + STEADY) {
        return Err(Unusable::NotSteady { low, high });
    }
    // Calls that may be of another kind take a mean call's time more or less.
    let bare = sum(false, |w| w.ticks) / sum(false, Window::all_calls).max(1.0);
    let unlike = other * bare;
    // What cannot be switched costs as much as the rest; or as a call in a loop, or as the most.
    let of_rest = [low, middle, high].map(|ticks| ticks / (1.0 - part));
    let most = known.most.unwrap_or(of_rest[2]);
    let of_others = [
        of_rest[0].min(known.in_a_loop[0]),
        of_rest[1],
        of_rest[2].max(known.in_a_loop[2]).max(most),
    ];
    let call = |n: usize, of_switched: f64| of_switched + part * of_others[n] + known.off[n];
    Ok(Found {
        call_ticks: [
            (call(0, low) - unlike).max(0.0),
            call(1, middle),
            call(2, high) + unlike,
        ],
        pairs,
        not_switched_percent,
    })
}

/// Of one pair: all threads with calls in both windows together, each as its calls weigh.
fn added(windows: &[Window], pair: u32) -> Option<f64> {
    let of = |on: bool| {
        let those = windows.iter().filter(move |w| w.pair == pair && w.on == on);
        those.filter(|w| w.all_calls() >= CALLS_MIN && w.ticks > 0.0)
    };
    let (mut ticks, mut calls) = (0.0, 0.0);
    for on in of(true) {
        let Some(off) = of(false).find(|w| w.thread == on.thread) else {
            continue;
        };
        ticks += on.ticks - on.all_calls() * off.ticks / off.all_calls();
        calls += on.all_calls();
    }
    (calls > 0.0).then(|| ticks / calls)
}

/// Which part of the calls of a thread would have to be of another class for its shares to be the same
/// with probes and without; the mean of the threads, as their calls weigh.
fn other_calls(windows: &[Window]) -> f64 {
    let threads = windows.iter().map(|w| w.thread + 1).max().unwrap_or(0);
    let (mut differ, mut all) = (0.0, 0.0);
    for thread in 0..threads {
        let shares = |on: bool| {
            let mut calls = [0.0; OFF_CLASSES];
            for w in windows.iter().filter(|w| w.thread == thread && w.on == on) {
                calls.iter_mut().zip(w.calls).for_each(|(sum, n)| *sum += n);
            }
            let sum: f64 = calls.iter().sum();
            (calls.map(|n| n / sum.max(1.0)), sum)
        };
        let ((on, calls_on), (off, calls_off)) = (shares(true), shares(false));
        if calls_on < CALLS_MIN || calls_off < CALLS_MIN {
            continue;
        }
        let apart: f64 = on.iter().zip(off).map(|(a, b)| (a - b).abs()).sum();
        differ += apart / 2.0 * (calls_on + calls_off);
        all += calls_on + calls_off;
    }
    if all > 0.0 { differ / all } else { 0.0 }
}

/// How many of `n` lie outside of the median's interval at either end: the median is below the k-th
/// smallest with the chance of fewer than k heads of n tosses.
fn outside(n: usize) -> usize {
    if n > EXACT_PAIRS {
        // The normal distribution that tosses come close to; their exact chances are below what a
        // float holds.
        return (n as f64 / 2.0 - 0.98 * (n as f64).sqrt()) as usize;
    }
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
