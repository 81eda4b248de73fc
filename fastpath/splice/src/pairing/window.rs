//! What one connection's two threads do, tenth of a second after tenth of a second, and what follows from it.
use super::affinity::Times;

/// One window, ns, at least.
pub(super) const WINDOW_NS: u64 = 100_000_000;
/// Messages of one end in a window, at least: fewer are not worth it.
const MESSAGES_MIN: u64 = 50;
/// Two windows in a row show that they take turns.
const CALM_WINDOWS: u32 = 2;
/// Of the window, both threads together at most: who never sleeps does not wait for the other one. Running does not tell
/// more: in a virtual machine waking another processor may take most of the time, and counts as running.
const APART_SHARE: f64 = 1.9;
/// From here on the processor has no time left.
const FULL_SHARE: f64 = 0.9;
/// Placed, they are so many times faster, or it is undone.
const GAIN: f64 = 1.25;
/// Of the window, each thread at most: one that is ready to run all the same has no processor.
const STARVED_SHARE: f64 = 0.1;
/// With nothing to do for so long the masks are restored.
const IDLE_WINDOWS: u32 = 10;
/// After it was undone for being slower: doubled each time.
const RETRY_NS: u64 = 1_000_000_000;
const RETRY_DOUBLINGS: u32 = 6;

/// What is known of a connection at one moment, both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Seen {
    pub(super) ns: u64,
    pub(super) messages: [u64; 2],
    /// Changes of the threads that send.
    pub(super) senders: [u32; 2],
    pub(super) times: [Times; 2],
    /// Running, or ready to.
    pub(super) are_runnable: [bool; 2],
    /// These two threads send on no other connection.
    pub(super) is_alone: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Stay,
    Place,
    /// They are no faster, or both are ready to run.
    UndoSlower,
    UndoOther,
}

#[derive(Debug, Default)]
pub(super) struct Windows {
    begun: Option<Seen>,
    calm: u32,
    /// Messages a second before they were placed; none: they are not.
    before: Option<f64>,
    /// Since they were placed.
    windows: u32,
    idle: u32,
    undone: u32,
    not_before_ns: u64,
    /// Speed is not looked at.
    pub(super) anyway: bool,
}

impl Windows {
    pub(super) fn is_placed(&self) -> bool {
        self.before.is_some()
    }

    /// It could not be placed: not tried again soon.
    pub(super) fn give_back(&mut self, now_ns: u64) {
        self.before = None;
        self.calm = 0;
        self.undone += 1;
        self.not_before_ns = now_ns + (RETRY_NS << self.undone.min(RETRY_DOUBLINGS));
    }

    pub(super) fn look(&mut self, seen: Seen) -> Verdict {
        let Some(begun) = self.begun else {
            self.begun = Some(seen);
            return Verdict::Stay;
        };
        if seen.ns < begun.ns + WINDOW_NS {
            return Verdict::Stay;
        }
        self.begun = Some(seen);
        let window = Window::between(&begun, &seen);
        match self.before {
            None => self.apart(&window, seen.ns),
            Some(before) => self.placed(&window, before, seen.ns),
        }
    }

    fn apart(&mut self, window: &Window, now_ns: u64) -> Verdict {
        let is_one = window.takes_turns && (self.anyway || window.ran <= APART_SHARE);
        self.calm = if is_one { self.calm + 1 } else { 0 };
        if self.calm < CALM_WINDOWS || now_ns < self.not_before_ns {
            return Verdict::Stay;
        }
        self.before = Some(window.rate);
        (self.calm, self.windows, self.idle) = (0, 0, 0);
        Verdict::Place
    }

    fn placed(&mut self, window: &Window, before: f64, now_ns: u64) -> Verdict {
        self.windows += 1;
        let is_full = window.ran + window.waited >= FULL_SHARE;
        // The first one has the move in it; what is slower all the same was doing two things at a time.
        if self.windows == 1 && !(is_full && window.rate < before) {
            return Verdict::Stay;
        }
        let is_gained = self.windows > 2 || window.rate >= GAIN * before;
        let is_slower = (is_full && window.rate < before)
            || (window.takes_turns && !is_gained)
            // What has their processor has priority, and may keep it.
            || (window.is_idle && window.is_starved);
        if is_slower && !self.anyway {
            self.give_back(now_ns);
            return Verdict::UndoSlower;
        }
        self.idle = if window.is_idle { self.idle + 1 } else { 0 };
        let is_other = !window.takes_turns && !window.is_idle;
        if is_other || self.idle >= IDLE_WINDOWS {
            self.before = None;
            return Verdict::UndoOther;
        }
        Verdict::Stay
    }
}

struct Window {
    /// Messages of both a second.
    rate: f64,
    /// Each message is followed by one of the other end, and always the same two threads send, on this connection alone.
    takes_turns: bool,
    is_idle: bool,
    /// One of them is ready to run, and something else runs.
    is_starved: bool,
    /// Of the window, both together: they ran, and they were ready while something else ran.
    ran: f64,
    waited: f64,
}

impl Window {
    fn between(begun: &Seen, seen: &Seen) -> Window {
        let ns = seen.ns - begun.ns;
        let of = |end: usize| seen.messages[end].saturating_sub(begun.messages[end]);
        let (one, other) = (of(0), of(1));
        let share = |time: fn(&Times) -> u64| {
            let of = |end: usize| time(&seen.times[end]).saturating_sub(time(&begun.times[end]));
            (of(0) + of(1)) as f64 / ns as f64
        };
        // The two counts are read one after the other, while messages go on.
        let is_even = one.abs_diff(other) <= 2 + one.max(other) / 50;
        Window {
            rate: (one + other) as f64 * 1e9 / ns as f64,
            takes_turns: is_even
                && one.min(other) >= MESSAGES_MIN
                && seen.senders == begun.senders
                && seen.is_alone,
            is_idle: one + other < MESSAGES_MIN && seen.senders == begun.senders,
            is_starved: (0..2).any(|end| {
                let ran = seen.times[end].ran.saturating_sub(begun.times[end].ran);
                seen.are_runnable[end] && (ran as f64) < STARVED_SHARE * ns as f64
            }),
            ran: share(|times| times.ran),
            waited: share(|times| times.waited),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Run {
        windows: Windows,
        seen: Seen,
    }

    impl Run {
        fn new() -> Run {
            Run {
                windows: Windows::default(),
                seen: Seen {
                    is_alone: true,
                    ..Seen::default()
                },
            }
        }

        /// A window: messages of each end, and shares of it in thousandths.
        fn next(&mut self, messages: [u64; 2], ran: u64, waited: u64) -> Verdict {
            self.windows.look(self.seen);
            self.seen.ns += WINDOW_NS;
            for (seen, more) in self.seen.messages.iter_mut().zip(messages) {
                *seen += more;
            }
            for times in &mut self.seen.times {
                times.ran += WINDOW_NS * ran / 2_000;
                times.waited += WINDOW_NS * waited / 2_000;
            }
            self.windows.look(self.seen)
        }

        fn place(&mut self) {
            assert_eq!(self.next([1000, 1000], 300, 0), Verdict::Stay);
            assert_eq!(self.next([1000, 999], 300, 0), Verdict::Place);
            assert_eq!(self.next([3000, 3000], 900, 100), Verdict::Stay);
        }
    }

    #[test]
    fn those_that_take_turns_are_placed_and_stay() {
        let mut run = Run::new();
        run.place();
        for _ in 0..20 {
            assert_eq!(run.next([5000, 5000], 990, 200), Verdict::Stay);
        }
    }

    #[test]
    fn those_that_run_at_the_same_time_are_not() {
        let mut run = Run::new();
        for _ in 0..20 {
            assert_eq!(run.next([1000, 1000], 1950, 0), Verdict::Stay);
            assert_eq!(run.next([1000, 600], 300, 0), Verdict::Stay);
            assert_eq!(run.next([10, 10], 300, 0), Verdict::Stay);
        }
        run.seen.is_alone = false;
        for _ in 0..20 {
            assert_eq!(run.next([1000, 1000], 300, 0), Verdict::Stay);
        }
    }

    #[test]
    fn what_is_no_faster_is_undone_and_tried_again_later() {
        let mut run = Run::new();
        run.place();
        assert_eq!(run.next([1100, 1100], 500, 100), Verdict::UndoSlower);
        for _ in 0..19 {
            assert_eq!(run.next([1000, 1000], 300, 0), Verdict::Stay);
        }
        assert_eq!(run.next([1000, 1000], 300, 0), Verdict::Place);
    }

    #[test]
    fn what_is_slower_at_once_is_undone_at_once() {
        let mut run = Run::new();
        run.next([1000, 1000], 1500, 0);
        assert_eq!(run.next([1000, 1000], 1500, 0), Verdict::Place);
        assert_eq!(run.next([700, 700], 1000, 800), Verdict::UndoSlower);
    }

    #[test]
    fn two_that_come_to_run_at_the_same_time_are_undone() {
        let mut run = Run::new();
        run.place();
        assert_eq!(run.next([5000, 5000], 990, 200), Verdict::Stay);
        assert_eq!(run.next([600, 600], 1000, 900), Verdict::UndoSlower);
    }

    /// What waits for a processor is not in schedstat before it runs again.
    #[test]
    fn something_of_higher_priority_on_their_processor_undoes_it() {
        let mut run = Run::new();
        run.place();
        run.next([5000, 5000], 990, 200);
        run.seen.are_runnable[1] = true;
        assert_eq!(run.next([0, 0], 0, 0), Verdict::UndoSlower);
        let mut run = Run::new();
        run.place();
        run.next([5000, 5000], 990, 200);
        run.seen.are_runnable[1] = true;
        assert_eq!(run.next([10, 10], 500, 0), Verdict::Stay, "they work");
    }

    #[test]
    fn other_work_and_a_long_silence_undo_it() {
        let mut run = Run::new();
        run.place();
        run.next([5000, 5000], 990, 200);
        run.seen.senders[1] += 1;
        // Before the window's end: within it another thread sent.
        run.seen.ns += WINDOW_NS;
        run.seen.messages = run.seen.messages.map(|n| n + 5000);
        assert_eq!(run.windows.look(run.seen), Verdict::UndoOther);
        let mut run = Run::new();
        run.place();
        run.next([5000, 5000], 990, 200);
        for _ in 1..IDLE_WINDOWS {
            assert_eq!(run.next([0, 0], 0, 0), Verdict::Stay);
        }
        assert_eq!(run.next([0, 0], 0, 0), Verdict::UndoOther);
    }
}
