//! One run: sender and matcher on threads of their own where there are processors for both, until
//! every packet has its fate.
use super::PacketsError;
use super::clock::{Clock, Machine, ticks};
use super::due::Due;
use super::matcher::{Bounds, Matcher, Recognition, RowSink, Strays};
use super::sender::{Sender, SenderCounts, Span, Step};
use super::source::Source;
use super::tally::{Interval, PacketCounts, Tally};
use super::wait::{Idle, Wait};
use super::window::Window;
use hopscope_event::{Tsc, TscFrequency};
use hopscope_netio::{Counters, PacketIo, PortError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long what was due by the end of a run may still be sent: a hiccup at the end must not cut
/// packets off. More is a rate that cannot be kept, and is counted as unsent.
pub const GRACE: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, Copy)]
pub struct Timing {
    pub warm_up: Duration,
    pub duration: Duration,
    /// Packets at most, warm-up included.
    pub count: u64,
    pub interval: Duration,
    pub late_after: Duration,
    pub lost_after: Duration,
    /// To size the window by; 0 where no rate is asked for.
    pub rate: f64,
}

/// Where frames leave and arrive.
pub enum Ports<'a> {
    /// Nothing is received; what becomes of the packets is not known.
    SendOnly(&'a mut dyn PacketIo),
    /// One for both, on one thread.
    One(&'a mut dyn PacketIo),
    Two {
        sender: &'a mut dyn PacketIo,
        receiver: &'a mut dyn PacketIo,
        threads: bool,
    },
}

/// What a run came to. Every packet sent is in `total` or `warm_up`.
#[derive(Debug)]
pub struct RunResult {
    pub start: Tsc,
    /// When measuring began, and when the sender stopped.
    pub measured_from: Tsc,
    pub ended: Tsc,
    /// Due in the measured time, where a rate was asked for.
    pub asked: Option<f64>,
    pub sender: SenderCounts,
    pub total: PacketCounts,
    pub warm_up: PacketCounts,
    pub strays: Strays,
    /// Of the ports, during this run.
    pub sender_port: Counters,
    pub receiver_port: Counters,
    pub interrupted: bool,
}

/// An interval's line: what was asked in it, and what was done.
pub type OnInterval<'a> = dyn FnMut(&Interval, Option<f64>) + 'a;

pub struct Run<'a> {
    pub source: Source,
    pub due: Due,
    pub recognition: Recognition,
    pub flows: u32,
    pub number: u8,
    pub timing: Timing,
    pub frequency: TscFrequency,
    pub wait: Wait,
    pub rows: Option<RowSink>,
    /// Set by a signal handler: the run ends as if its time were over.
    pub stop: &'a AtomicBool,
}

/// Whoever ends first, in whatever way, must end the other.
struct EndsWindow(Arc<Window>);

impl Drop for EndsWindow {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Run<'_> {
    /// # Errors
    /// The ports'. Packets on their way are then not accounted for.
    pub fn run(
        self,
        mut ports: Ports<'_>,
        on_interval: &mut OnInterval<'_>,
    ) -> Result<RunResult, PacketsError> {
        let in_ticks = |time| ticks(self.frequency, time);
        let timing = self.timing;
        let capacity = timing.rate * (timing.lost_after + GRACE).as_secs_f64() * 1.25;
        let capacity = if timing.rate > 0.0 {
            capacity as usize
        } else {
            usize::MAX
        };
        let window = Arc::new(Window::new(capacity));
        let before = counters(&mut ports)?;

        // A moment ahead: threads must have started by then.
        let start = Machine.now() + in_ticks(Duration::from_millis(2));
        let measured_from = start + in_ticks(timing.warm_up);
        let end = measured_from + in_ticks(timing.duration);
        let span = Span {
            start,
            end,
            give_up: end + in_ticks(GRACE),
            count: timing.count,
        };
        let bounds = Bounds {
            late: in_ticks(timing.late_after),
            lost: in_ticks(timing.lost_after),
        };
        let length = in_ticks(timing.interval).max(1);
        let tally = Tally::new(start, measured_from, end, length, self.frequency);
        let expected = self.due.clone();
        let asked =
            |from: Tsc, to: Tsc| expected.expected((from - start) as u64, (to - start) as u64);
        let sender = Sender::new(
            self.source,
            self.due,
            Arc::clone(&window),
            span,
            self.number,
        );
        let matcher = Matcher::new(
            Arc::clone(&window),
            self.recognition,
            self.flows,
            bounds,
            tally,
            self.rows,
        );
        let mut sending = Sending {
            sender,
            idle: Idle::new(self.wait, self.frequency),
            stop: self.stop,
            ended: None,
            next: None,
        };
        let mut matching = Matching {
            matcher,
            idle: Idle::new(self.wait, self.frequency),
            on_interval: &mut |interval| on_interval(interval, asked(interval.start, interval.end)),
            receives: true,
        };
        match &mut ports {
            Ports::SendOnly(port) => {
                matching.receives = false;
                while !matching.matcher.is_done() {
                    sending.step(*port)?;
                    matching.step(*port, Some(&sending))?;
                }
            }
            Ports::One(port) => {
                while !matching.matcher.is_done() {
                    sending.step(*port)?;
                    matching.step(*port, Some(&sending))?;
                }
            }
            Ports::Two {
                sender,
                receiver,
                threads: false,
            } => {
                while !matching.matcher.is_done() {
                    sending.step(*sender)?;
                    matching.step(*receiver, Some(&sending))?;
                }
            }
            Ports::Two {
                sender,
                receiver,
                threads: true,
            } => {
                let window = Arc::clone(&window);
                let abandoned = AtomicBool::new(false);
                std::thread::scope(|scope| {
                    let abandoned = &abandoned;
                    let sending = &mut sending;
                    let thread = scope.spawn(move || {
                        let _ends = EndsWindow(window);
                        sending.finish_with(*sender, abandoned)
                    });
                    let matched = matching.finish_with(*receiver);
                    abandoned.store(true, Ordering::Relaxed);
                    let sent = thread.join();
                    matched?;
                    sent.map_err(|_| PacketsError::Thread("the sender"))?
                })?;
            }
        }
        let ended = sending.ended.unwrap_or(end);
        matching.finish(ended);
        let after = counters(&mut ports)?;
        let tally = matching.matcher.tally();
        let (total, warm_up) = (
            std::mem::take(&mut tally.total),
            std::mem::take(&mut tally.warm_up),
        );
        Ok(RunResult {
            start,
            measured_from,
            ended,
            asked: asked(measured_from.min(ended), ended.min(end)),
            sender: sending.sender.counts(),
            total,
            warm_up,
            strays: matching.matcher.strays(),
            sender_port: since(before.0, after.0),
            receiver_port: since(before.1, after.1),
            interrupted: self.stop.load(Ordering::Relaxed),
        })
    }
}

struct Sending<'a> {
    sender: Sender,
    idle: Idle,
    stop: &'a AtomicBool,
    ended: Option<Tsc>,
    /// When nothing is due before; `None` while something is.
    next: Option<Tsc>,
}

impl Sending<'_> {
    fn step(&mut self, port: &mut dyn PacketIo) -> Result<Step, PacketsError> {
        if self.ended.is_some() {
            return Ok(Step::Done);
        }
        if self.stop.load(Ordering::Relaxed) {
            self.sender.stop(Machine.now());
        }
        self.next = None;
        let step = self.sender.step(port, &Machine)?;
        match step {
            Step::Sent(_) | Step::Full => {}
            Step::NotDue(next) => self.next = Some(next),
            Step::Done => self.ended = Some(Machine.now()),
        }
        Ok(step)
    }

    fn finish_with(
        &mut self,
        port: &mut dyn PacketIo,
        abandoned: &AtomicBool,
    ) -> Result<(), PacketsError> {
        // The slack of timers is a thread's own.
        self.idle = self.idle.again();
        while self.ended.is_none() && !abandoned.load(Ordering::Relaxed) {
            match self.step(port)? {
                Step::NotDue(next) => self.idle.until(Machine.now(), next),
                // Whoever makes room may wait for this processor.
                Step::Full => std::thread::yield_now(),
                Step::Sent(_) | Step::Done => {}
            }
        }
        Ok(())
    }
}

struct Matching<'a> {
    matcher: Matcher,
    idle: Idle,
    on_interval: &'a mut dyn FnMut(&Interval),
    /// False once the port has said that nothing comes again.
    receives: bool,
}

impl Matching<'_> {
    /// With the sender on the same thread, nothing may be slept through that is due.
    fn step(
        &mut self,
        port: &mut dyn PacketIo,
        beside: Option<&Sending<'_>>,
    ) -> Result<(), PacketsError> {
        let now = Machine.now();
        let mut received = 0;
        if self.receives {
            match self.matcher.step(port, now) {
                Ok(count) => received = count,
                Err(PortError::Ended { .. }) => self.receives = false,
                Err(error) => return Err(error.into()),
            }
        }
        if !self.receives {
            self.matcher.give_up();
        }
        while let Some(interval) = self.matcher.closed_interval(now) {
            (self.on_interval)(&interval);
        }
        let sending =
            beside.is_some_and(|sending| sending.ended.is_none() && sending.next.is_none());
        if received > 0 || sending {
            self.idle.busy(now)
        } else {
            let due = beside.and_then(|sending| sending.next);
            self.idle.for_frames(now, due, port);
        }
        Ok(())
    }

    fn finish_with(&mut self, port: &mut dyn PacketIo) -> Result<(), PacketsError> {
        while !self.matcher.is_done() {
            self.step(port, None)?;
        }
        Ok(())
    }

    fn finish(&mut self, ended: Tsc) {
        while let Some(interval) = self.matcher.tally().finish(ended) {
            (self.on_interval)(&interval);
        }
    }
}

/// Of the sending and of the receiving port.
fn counters(ports: &mut Ports<'_>) -> Result<(Counters, Counters), PacketsError> {
    Ok(match ports {
        Ports::SendOnly(port) | Ports::One(port) => {
            let both = port.counters()?;
            (both, both)
        }
        Ports::Two {
            sender, receiver, ..
        } => (sender.counters()?, receiver.counters()?),
    })
}

fn since(before: Counters, after: Counters) -> Counters {
    Counters {
        received: after.received - before.received,
        received_bytes: after.received_bytes - before.received_bytes,
        receive_dropped: after.receive_dropped - before.receive_dropped,
        device_gone: after.device_gone,
        receive_cut: after.receive_cut - before.receive_cut,
        sent: after.sent - before.sent,
        sent_bytes: after.sent_bytes - before.sent_bytes,
        send_failed: after.send_failed - before.send_failed,
    }
}
