//! Which engine is better here: connections are given to both in turn for a while, and what each of them
//! moved in its time is compared. Who waits for answers moves more when they come sooner, so latency
//! is in it. Times are handed in.
use super::{EngineChoice, EngineKind};
use serde::Serialize;
use std::time::{Duration, Instant};

/// Of each engine, at least, with bytes.
const FEW: usize = 5;
/// More change nothing, and comparing ranks costs their product.
const MOST: usize = 1000;
/// What the kernel must be better by, and how far beyond chance (standard deviations of the rank sum).
const BETTER: f64 = 1.1;
const SURE: f64 = 2.0;

/// Connections of one engine in a comparison.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Measured {
    pub connections: usize,
    /// Of their bytes a second, both directions together; the median.
    pub bytes_per_s: f64,
}

/// What a comparison came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EngineVerdict {
    pub engine: EngineKind,
    pub why: &'static str,
    pub user: Measured,
    pub kernel: Measured,
    /// Kernel to user.
    pub ratio: f64,
    /// How far the kernel's ranks lie above chance, in standard deviations.
    pub sure: f64,
    pub window_ms: u64,
}

enum State {
    Fixed(EngineKind),
    /// Since the first connection of the window.
    Measuring(Option<Instant>),
    Chosen(EngineKind, Instant),
}

pub(super) struct Chooser {
    state: State,
    window: Duration,
    again: Duration,
    number: u32,
    next: EngineKind,
    rates: [Vec<f64>; 2],
}

impl Chooser {
    pub(super) fn new(choice: EngineChoice, window: Duration, again: Duration) -> Chooser {
        Chooser {
            state: match choice {
                EngineChoice::Auto => State::Measuring(None),
                EngineChoice::Kernel => State::Fixed(EngineKind::Kernel),
                EngineChoice::User => State::Fixed(EngineKind::User),
            },
            window,
            again,
            number: 0,
            next: EngineKind::User,
            rates: [Vec::new(), Vec::new()],
        }
    }

    /// For a new connection: its engine, and the comparison that it takes part in.
    pub(super) fn pick(&mut self, now: Instant) -> (EngineKind, Option<u32>) {
        if let State::Chosen(_, until) = self.state
            && now >= until
        {
            self.number += 1;
            self.rates = [Vec::new(), Vec::new()];
            self.state = State::Measuring(None);
        }
        match &mut self.state {
            State::Fixed(engine) | State::Chosen(engine, _) => (*engine, None),
            State::Measuring(since) => {
                since.get_or_insert(now);
                let engine = self.next;
                self.next = match engine {
                    EngineKind::User => EngineKind::Kernel,
                    EngineKind::Kernel => EngineKind::User,
                };
                (engine, Some(self.number))
            }
        }
    }

    /// When the window that is open ends.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.state {
            State::Measuring(Some(since)) => Some(since + self.window),
            _ => None,
        }
    }

    /// Of a connection of that comparison; those without bytes say nothing.
    pub(super) fn add(&mut self, window: u32, engine: EngineKind, bytes: u64, took: Duration) {
        let is_wanted = window == self.number && matches!(self.state, State::Measuring(_));
        if is_wanted && bytes > 0 && self.rates[engine as usize].len() < MOST {
            let rate = bytes as f64 / took.as_secs_f64().max(1e-6);
            self.rates[engine as usize].push(rate);
        }
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// At the end of a window, with `open`: what connections that are still there have moved. `None`
    /// where there were too few of them; those that ended are kept for the next window.
    pub(super) fn choose(
        &mut self,
        now: Instant,
        open: impl IntoIterator<Item = (EngineKind, u64, Duration)>,
    ) -> Option<EngineVerdict> {
        let ended = self.rates.clone();
        for (engine, bytes, took) in open {
            self.add(self.number, engine, bytes, took);
        }
        let rates = std::mem::replace(&mut self.rates, ended);
        let State::Measuring(Some(since)) = self.state else {
            return None;
        };
        if rates.iter().any(|rates| rates.len() < FEW) {
            self.state = State::Measuring(Some(now));
            return None;
        }
        let choice = compare(rates, now - since);
        self.state = State::Chosen(choice.engine, now + self.again);
        Some(choice)
    }
}

fn compare(rates: [Vec<f64>; 2], took: Duration) -> EngineVerdict {
    let sure = rank_sum(&rates[1], &rates[0]);
    let [user, kernel] = rates.map(measured);
    let ratio = kernel.bytes_per_s / user.bytes_per_s;
    let (engine, why) = match (ratio >= BETTER, sure >= SURE) {
        (true, true) => (EngineKind::Kernel, "its connections moved more"),
        (true, false) => (EngineKind::User, "no difference beyond chance"),
        _ if sure <= -SURE => (EngineKind::User, "its connections moved more"),
        _ => (EngineKind::User, "the kernel is not a tenth better"),
    };
    EngineVerdict {
        engine,
        why,
        user,
        kernel,
        ratio,
        sure,
        window_ms: took.as_millis() as u64,
    }
}

fn measured(mut rates: Vec<f64>) -> Measured {
    rates.sort_unstable_by(f64::total_cmp);
    Measured {
        connections: rates.len(),
        bytes_per_s: rates.get(rates.len() / 2).copied().unwrap_or(0.0),
    }
}

/// Mann and Whitney's U of `a` over `b`, as a number of standard deviations from what chance gives.
fn rank_sum(a: &[f64], b: &[f64]) -> f64 {
    let above: f64 = a
        .iter()
        .flat_map(|a| b.iter().map(move |b| (a, b)))
        .map(|(a, b)| f64::from(u8::from(a > b)) + f64::from(u8::from(a == b)) / 2.0)
        .sum();
    let (n, m) = (a.len() as f64, b.len() as f64);
    let deviation = (n * m * (n + m + 1.0) / 12.0).sqrt();
    (above - n * m / 2.0) / deviation
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(2);

    fn chooser(start: Instant, connections: usize) -> Chooser {
        let mut chooser = Chooser::new(EngineChoice::Auto, WINDOW, Duration::from_secs(60));
        for number in 0..connections {
            let expected = [EngineKind::User, EngineKind::Kernel][number % 2];
            assert_eq!(chooser.pick(start), (expected, Some(0)));
        }
        chooser
    }

    fn all(user: [u64; 6], kernel: [u64; 6]) -> Vec<(EngineKind, u64, Duration)> {
        let of = |engine, bytes: [u64; 6]| bytes.map(|bytes| (engine, bytes, WINDOW));
        [of(EngineKind::User, user), of(EngineKind::Kernel, kernel)].concat()
    }

    #[test]
    fn the_kernel_is_chosen_when_it_is_better_beyond_chance() {
        let start = Instant::now();
        for (user, kernel, engine) in [
            ([100; 6], [200; 6], EngineKind::Kernel),
            ([100, 101, 102, 103, 104, 105], [106; 6], EngineKind::User),
            ([200; 6], [100; 6], EngineKind::User),
            // One that moves very much is none.
            ([100; 6], [1, 1, 1, 1, 1, 1_000_000], EngineKind::User),
            (
                [1, 90, 100, 110, 500, 900],
                [1, 80, 95, 130, 400, 901],
                EngineKind::User,
            ),
        ] {
            let mut chooser = chooser(start, 12);
            assert_eq!(chooser.deadline(), Some(start + WINDOW));
            let choice = chooser.choose(start + WINDOW, all(user, kernel)).unwrap();
            assert_eq!(choice.engine, engine, "{choice:?}");
            assert_eq!((choice.user.connections, choice.kernel.connections), (6, 6));
            assert_eq!(chooser.pick(start + WINDOW), (engine, None));
            assert_eq!(chooser.deadline(), None);
            let later = start + WINDOW + Duration::from_secs(60);
            assert_eq!(chooser.pick(later).1, Some(1));
        }
    }

    #[test]
    fn too_few_connections_decide_nothing_and_count_on() {
        let start = Instant::now();
        let mut chooser = chooser(start, 2);
        chooser.add(0, EngineKind::User, 100, WINDOW);
        chooser.add(0, EngineKind::Kernel, 0, WINDOW);
        // Of an earlier comparison.
        chooser.add(7, EngineKind::Kernel, 100, WINDOW);
        assert_eq!(chooser.choose(start + WINDOW, []), None);
        assert_eq!(chooser.deadline(), Some(start + WINDOW * 2));
        let choice = chooser.choose(start + WINDOW * 2, all([1; 6], [2; 6]));
        assert_eq!(choice.unwrap().user.connections, 7);
    }

    #[test]
    fn what_is_fixed_is_not_measured() {
        let now = Instant::now();
        let mut chooser = Chooser::new(EngineChoice::Kernel, WINDOW, WINDOW);
        assert_eq!(chooser.pick(now), (EngineKind::Kernel, None));
        assert_eq!(chooser.deadline(), None);
    }
}
