//! Time cut into intervals, each of which is handed to whoever shows it.
use super::live::{Live, Snapshot};
use hopscope_event::Tsc;
use hopscope_probe::recorder::Status;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::{Duration, Instant};

/// Cuts the time into intervals and hands each to whoever shows it.
pub(super) struct Intervals {
    every: Duration,
    started: Instant,
    last: Cell<Instant>,
    lost_before: Cell<u64>,
    live: Rc<RefCell<Live>>,
    sender: SyncSender<Snapshot>,
    /// As the recorder said it last, once a second.
    slowdown: Cell<Option<f64>>,
    calls_unmeasured: Cell<u64>,
    /// Intervals that were not shown because the output did not keep up.
    missed: Cell<u64>,
}

impl Intervals {
    pub(super) fn new(
        every: Duration,
        live: Rc<RefCell<Live>>,
        sender: SyncSender<Snapshot>,
    ) -> Intervals {
        let now = Instant::now();
        Intervals {
            every,
            started: now,
            last: Cell::new(now),
            lost_before: Cell::new(0),
            live,
            sender,
            slowdown: Cell::new(None),
            calls_unmeasured: Cell::new(0),
            missed: Cell::new(0),
        }
    }

    pub(super) fn tick(&self) {
        if self.last.get().elapsed() >= self.every {
            self.send();
        }
    }

    fn send(&self) {
        let now = Instant::now();
        let span = now - self.last.replace(now);
        let mut snapshot = self.live.borrow_mut().snapshot();
        snapshot.span_s = span.as_secs_f64();
        snapshot.since_start_s = (now - self.started).as_secs_f64();
        snapshot.lost = snapshot.lost_whole - self.lost_before.replace(snapshot.lost_whole);
        snapshot.calls_unmeasured = self.calls_unmeasured.get();
        snapshot.slowdown_percent = self.slowdown.get();
        // Disconnected: whoever looked is gone, and the recorder is about to stop.
        if let Err(TrySendError::Full(_)) = self.sender.try_send(snapshot) {
            self.missed.set(self.missed.get() + 1);
        }
    }

    /// As the recorder says it, once a second.
    pub(super) fn status(&self, status: &Status) {
        self.slowdown.set(status.slowdown_percent);
        self.calls_unmeasured.set(status.calls_unmeasured);
    }

    /// Hands over what came last. How many intervals were not shown.
    pub(super) fn finish(self, calls_unmeasured: u64) -> u64 {
        self.calls_unmeasured.set(calls_unmeasured);
        self.live.borrow_mut().visited(Tsc(u64::MAX));
        self.send();
        self.missed.get()
    }
}
