//! The sending side: everything that is due goes out, in order, and nothing makes it forget what
//! was due. It waits for nothing itself: the caller gives it the time.
use super::clock::Clock;
use super::due::Due;
use super::source::Source;
use super::window::{Sent, Window};
use super::{PacketsError, stamp::Stamped};
use hopscope_event::Tsc;
use hopscope_netio::{Outgoing, PacketIo};
use std::sync::Arc;

/// Frames written between two looks at the port: short enough that the first does not wait long
/// for the last (3 µs at 10 million a second), long enough to share a system call.
pub const BURST: u64 = 32;

/// What a step came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Sent(u64),
    /// Nothing is due before this.
    NotDue(Tsc),
    /// Packets are due and the port, or the window, takes none.
    Full,
    Done,
}

/// When a run starts and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub start: Tsc,
    /// Packets due from here on are not sent.
    pub end: Tsc,
    /// When what was due and could not be sent is given up, and counted as unsent.
    pub give_up: Tsc,
    /// Packets to send at most.
    pub count: u64,
}

/// What only the sender knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SenderCounts {
    pub sent: u64,
    /// Due and never sent, because there was no time or no room left.
    pub unsent: u64,
    /// Steps in which the port took no frame although one was due.
    pub port_full: u64,
    /// The same for the window: the matcher did not keep up.
    pub window_full: u64,
}

pub struct Sender {
    source: Source,
    due: Due,
    window: Arc<Window>,
    span: Span,
    run: u8,
    seq: u64,
    next: Tsc,
    /// Frames that the port has and has not handed on.
    waiting: usize,
    counts: SenderCounts,
}

impl Sender {
    pub fn new(source: Source, mut due: Due, window: Arc<Window>, span: Span, run: u8) -> Sender {
        let next = span.start + due.next_ticks();
        Sender {
            source,
            due,
            window,
            span,
            run,
            seq: 0,
            next,
            waiting: 0,
            counts: SenderCounts::default(),
        }
    }

    pub fn counts(&self) -> SenderCounts {
        SenderCounts {
            sent: self.seq,
            ..self.counts
        }
    }

    /// Sends what is due, at most [`BURST`] packets.
    ///
    /// # Errors
    /// The port's.
    #[inline]
    pub fn step(
        &mut self,
        port: &mut dyn PacketIo,
        clock: &impl Clock,
    ) -> Result<Step, PacketsError> {
        if self.waiting > 0 {
            self.waiting = port.flush()?;
        }
        let now = clock.now();
        if self.is_over(now) {
            return Ok(Step::Done);
        }
        // Without a schedule `next` is the start.
        if self.next - now > 0 {
            return Ok(Step::NotDue(self.next));
        }
        let room = self.window.room(self.seq).min(BURST);
        if room == 0 {
            self.counts.window_full += 1;
            return Ok(Step::Full);
        }
        let sent = port.send(room as usize, &mut |slot| self.fill(slot, clock))? as u64;
        self.waiting = port.flush()?;
        if sent == 0 {
            self.counts.port_full += 1;
            return Ok(Step::Full);
        }
        Ok(Step::Sent(sent))
    }

    #[inline]
    fn fill(&mut self, slot: &mut [u8], clock: &impl Clock) -> Outgoing {
        let sent = clock.now();
        let intended = if self.due.at_once() { sent } else { self.next };
        if sent - intended < 0 || self.span.end - intended <= 0 || self.seq == self.span.count {
            return Outgoing::default();
        }
        let stamp = |flow| Stamped::new(self.run, self.seq, flow, intended, sent).to_bytes();
        let (len, flow) = self.source.write(slot, stamp);
        let packet = Sent {
            intended,
            sent,
            flow,
            len: len as u32,
        };
        self.window.note(self.seq, packet);
        self.seq += 1;
        self.next = self.span.start + self.due.next_ticks();
        Outgoing {
            len,
            ..Outgoing::default()
        }
    }

    /// Whether nothing more will be sent. Counts what should have been, the first time.
    fn is_over(&mut self, now: Tsc) -> bool {
        if self.window.has_ended() {
            return true;
        }
        let ended_at = if self.due.at_once() { now } else { self.next };
        let all_sent = self.span.end - ended_at <= 0 || self.seq == self.span.count;
        if !all_sent && self.span.give_up - now > 0 {
            return false;
        }
        if all_sent && self.waiting > 0 && self.span.give_up - now > 0 {
            return false;
        }
        self.stop(now);
        true
    }

    /// Ends the run at `now`, or when it would have ended: what is due by then is counted as unsent.
    pub fn stop(&mut self, now: Tsc) {
        if self.window.has_ended() {
            return;
        }
        let end = if self.span.end - now < 0 {
            self.span.end
        } else {
            now
        };
        while !self.due.at_once()
            && end - self.next > 0
            && self.seq + self.counts.unsent < self.span.count
        {
            self.counts.unsent += 1;
            self.next = self.span.start + self.due.next_ticks();
        }
        self.window.end();
    }
}
