//! Which parts of a recording the page shows call by call and packet by packet: all of it when it
//! is small enough to be mailed, else the surroundings of its slowest packets, or of what was asked.
use super::overview::{Overview, Slow};
use hopscope_event::{StreamIx, Tsc};

/// A part for each of the slowest would leave each too small to show what came before.
const PLACES_MAX: usize = 16;
/// Of these places, those that were asked for; the others are the slowest.
const WANTED_MAX: usize = 10;

/// How much is shown in detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    pub calls: u64,
    pub packets: u64,
}

impl Budget {
    /// A page of at most 8 MB.
    pub const WHOLE: Budget = Budget {
        calls: 1_000_000,
        packets: 250_000,
    };
    /// A page of less than 2 MB.
    pub const AROUND: Budget = Budget {
        calls: 200_000,
        packets: 40_000,
    };
}

/// Sorted parts of the time, apart from each other; what begins in them is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Windows {
    pub(crate) parts: Vec<(Tsc, Tsc)>,
    pub(crate) whole: bool,
    pub budget: Budget,
}

impl Windows {
    pub fn whole(budget: Budget) -> Windows {
        Windows {
            parts: vec![(Tsc(0), Tsc(u64::MAX))],
            whole: true,
            budget,
        }
    }

    /// The whole when it fits into the budget; else around `wanted` packets (when each was due and
    /// arrived, its stream and number), most wanted first, and around the slowest.
    pub fn choose(
        overview: &Overview,
        wanted: &[(Tsc, Tsc, StreamIx, u64)],
        budget: Budget,
    ) -> Windows {
        if overview.calls <= budget.calls && overview.packets <= budget.packets {
            return Windows::whole(budget);
        }
        let wanted = wanted.iter().take(WANTED_MAX);
        let mut places: Vec<Slow> = wanted
            .map(|(begin, end, stream, seq)| Slow {
                ticks: *end - *begin,
                begin: *begin,
                end: *end,
                packet: Some((*stream, *seq)),
            })
            .collect();
        for slow in overview.slowest() {
            let there = |p: &Slow| slow.packet.is_some() && p.packet == slow.packet;
            if places.len() < PLACES_MAX && !places.iter().any(there) {
                places.push(slow);
            }
        }
        let share = Budget {
            calls: budget.calls / places.len().max(1) as u64,
            packets: budget.packets / places.len().max(1) as u64,
        };
        let parts = places.iter().map(|s| grow(overview, s, share)).collect();
        Windows::of(parts, budget)
    }

    pub fn around(overview: &Overview, at: (Tsc, Tsc), budget: Budget) -> Windows {
        let place = Slow {
            ticks: 0,
            begin: at.0,
            end: at.1,
            packet: None,
        };
        Windows::of(vec![grow(overview, &place, budget)], budget)
    }

    fn of(mut parts: Vec<(Tsc, Tsc)>, budget: Budget) -> Windows {
        parts.sort_unstable();
        let mut apart: Vec<(Tsc, Tsc)> = Vec::new();
        for part in parts {
            match apart.last_mut() {
                Some(last) if part.0 <= last.1 => last.1 = last.1.max(part.1),
                _ => apart.push(part),
            }
        }
        Windows {
            parts: apart,
            whole: false,
            budget,
        }
    }

    pub fn contains(&self, at: Tsc) -> bool {
        self.touches(at, at)
    }

    /// Whether something from `begin` to `end` is seen in any part.
    pub fn touches(&self, begin: Tsc, end: Tsc) -> bool {
        let first = self.parts.partition_point(|part| part.1 <= begin);
        self.parts.get(first).is_some_and(|part| part.0 <= end)
    }
}

/// From a place outwards, bin by bin, as far as the budget goes. A single bin that exceeds it is
/// cut to the part of its time that the budget is of its content.
fn grow(overview: &Overview, place: &Slow, budget: Budget) -> (Tsc, Tsc) {
    let width = overview.width_ticks;
    let bins = &overview.bins;
    let bin_of = |at: Tsc| ((at - overview.base).max(0) as u64 / width) as usize;
    let last = bins.len().saturating_sub(1);
    let (mut low, mut high) = (bin_of(place.begin).min(last), bin_of(place.end).min(last));
    let cost = |range: std::ops::RangeInclusive<usize>| {
        let bins = bins.get(range).unwrap_or_default();
        let calls: u64 = bins.iter().map(|b| b.calls).sum();
        let packets: u64 = bins.iter().map(|b| b.sent).sum();
        let of = |n: u64, all: u64| n as f64 / all.max(1) as f64;
        of(calls, budget.calls).max(of(packets, budget.packets))
    };
    let mut used = cost(low..=high);
    if used > 1.0 {
        let span = (width * (high - low + 1) as u64) as f64 / used;
        let middle = place.begin + (place.end - place.begin).max(0) as u64 / 2;
        let half = ((span / 2.0) as u64).max(((place.end - place.begin).max(0) as u64) * 2);
        return (Tsc(middle.0.saturating_sub(half)), middle + half);
    }
    loop {
        let before = low.checked_sub(1).map(|at| cost(at..=at));
        let after = (high < last).then(|| cost(high + 1..=high + 1));
        match (before, after) {
            (Some(cost), _) if used + cost <= 1.0 => (low, used) = (low - 1, used + cost),
            (_, Some(cost)) if used + cost <= 1.0 => (high, used) = (high + 1, used + cost),
            _ => break,
        }
        let after = (high < last).then(|| cost(high + 1..=high + 1));
        if let Some(cost) = after
            && used + cost <= 1.0
        {
            (high, used) = (high + 1, used + cost);
        }
    }
    let begin = overview.base + low as u64 * width;
    (begin, overview.base + (high as u64 + 1) * width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopscope_event::Stamp;

    fn overview(packets: u64, slow: u64) -> Overview {
        let mut overview = Overview::new(Tsc(0));
        for seq in 0..packets {
            let at = Tsc(seq * 10_000);
            let latency = if seq == slow { 50_000 } else { 5_000 };
            overview.packet(
                StreamIx(0),
                &Stamp {
                    seq,
                    intended: at,
                    sent: at,
                    received: Some(at + latency),
                    ..Stamp::default()
                },
            );
        }
        overview
    }

    fn shown(windows: &Windows, packets: u64) -> Vec<u64> {
        let seen = |seq: &u64| windows.contains(Tsc(seq * 10_000));
        (0..packets).filter(seen).collect()
    }

    #[test]
    fn a_small_recording_is_shown_whole() {
        let windows = Windows::choose(&overview(1_000, 5), &[], Budget::AROUND);
        assert!(windows.whole);
        assert_eq!(shown(&windows, 1_000).len(), 1_000);
    }

    #[test]
    fn of_a_large_one_the_slowest_packet_is_shown_and_the_budget_kept() {
        let (packets, slow) = (400_000, 123_456);
        let budget = Budget {
            calls: 1_000,
            packets: 20_000,
        };
        let overview = overview(packets, slow);
        let wanted = 300_000;
        let due = Tsc(wanted * 10_000);
        let asked = [(due, due + 5_000, StreamIx(0), wanted)];
        let windows = Windows::choose(&overview, &asked, budget);
        let seen = shown(&windows, packets);
        assert!(!windows.whole && seen.contains(&slow) && seen.contains(&wanted));
        assert!((1_000..=21_000).contains(&seen.len()), "{}", seen.len());
    }

    #[test]
    fn around_a_packet_grows_to_both_sides() {
        let overview = overview(400_000, 0);
        let at = (Tsc(2_000_000_000), Tsc(2_000_005_000));
        let windows = Windows::around(&overview, at, Budget::AROUND);
        let seen = shown(&windows, 400_000);
        assert!(seen.contains(&200_000), "the packet itself");
        assert!((30_000..=40_000).contains(&seen.len()), "{}", seen.len());
        let before = seen.iter().filter(|seq| **seq < 200_000).count();
        assert!(
            (seen.len() / 3..seen.len() * 2 / 3).contains(&before),
            "{before}"
        );
    }

    #[test]
    fn what_crosses_a_border_is_seen() {
        let windows = Windows::of(
            vec![(Tsc(100), Tsc(200)), (Tsc(300), Tsc(400))],
            Budget::WHOLE,
        );
        for (begin, end, seen) in [
            (0, 99, false),
            (0, 100, true),
            (200, 299, false),
            (250, 500, true),
            (400, 900, false),
        ] {
            assert_eq!(
                windows.touches(Tsc(begin), Tsc(end)),
                seen,
                "{begin}..{end}"
            );
        }
    }
}
