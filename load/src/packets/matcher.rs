//! The receiving side: each arrival is joined with what the sender noted, each packet ends as
//! received or lost.
//!
//! Lost is what has not arrived a fixed time after it was sent (RFC 2680, 2.4: a threshold tells
//! loss from long delay). Reordered is what arrives after a packet of the same flow with a higher
//! number (RFC 4737, 3.3, over each flow). Duplicate is each arrival but the first (RFC 5560, 3.2).
use super::recognize::{Recognized, Recognizer};
use super::replay::Capture;
use super::stamp::{INTENDED_BITS, Stamped, lateness};
use super::tally::{Interval, Tally};
use super::window::{Sent, Window};
use hopscope_event::{Stamp, StampFlags, Tsc};
use hopscope_netio::{Frame, PacketIo, PortError};
use std::sync::Arc;

/// Frames taken from the port at a time.
pub const BURST: usize = 64;

/// How arrivals are told from each other.
pub enum Recognition {
    Stamped(Recognizer),
    Content(ByContent),
}

pub struct ByContent {
    capture: Arc<Capture>,
    /// Of each class: how many of its packets are known to be behind us.
    passed: Vec<u64>,
}

impl ByContent {
    pub fn new(capture: Arc<Capture>) -> ByContent {
        let passed = vec![0; capture.class_count()];
        ByContent { capture, passed }
    }
}

/// Takes the row of each packet, when its end is known.
pub type RowSink = Box<dyn FnMut(&Stamp) + Send>;

/// Times in ticks.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// A packet sent later than this after its intended time is late.
    pub late: u64,
    /// A packet that did not arrive in this time is lost.
    pub lost: u64,
}

/// Arrivals that are not the arrival of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Strays {
    /// Frames of someone else, or of another run.
    pub foreign: u64,
    /// Ours by their looks, too damaged to say which: their packets count as lost.
    pub damaged: u64,
    /// Packets that arrived after they had been given up as lost.
    pub after_lost: u64,
    /// Arrivals of packets so old that nothing is known of them any more.
    pub too_old: u64,
    /// Packets given up before their time because too many were on their way.
    pub given_up_early: u64,
}

const RECEIVED: u64 = 1;
const LOST: u64 = 2;

pub struct Matcher {
    window: Arc<Window>,
    recognition: Recognition,
    notes: Notes,
}

/// Everything but how frames are recognized: both are borrowed at once.
struct Notes {
    bounds: Bounds,
    /// Of each place in the window: number of the packet it is about, times four, and its fate.
    fates: Box<[u64]>,
    /// Everything before is received or lost.
    head: u64,
    published: u64,
    /// Of each flow: the highest number that arrived, plus 1.
    highest: Box<[u64]>,
    tally: Tally,
    strays: Strays,
    rows: Option<RowSink>,
}

impl Matcher {
    /// `rows` is shown each packet when its fate is known, and each further arrival.
    pub fn new(
        window: Arc<Window>,
        recognition: Recognition,
        flows: u32,
        bounds: Bounds,
        tally: Tally,
        rows: Option<RowSink>,
    ) -> Matcher {
        let notes = Notes {
            bounds,
            fates: vec![0; window.capacity() as usize].into(),
            head: 0,
            published: 0,
            highest: vec![0; flows as usize].into(),
            tally,
            strays: Strays::default(),
            rows,
        };
        Matcher {
            window,
            recognition,
            notes,
        }
    }

    pub fn strays(&self) -> Strays {
        self.notes.strays
    }

    pub fn tally(&mut self) -> &mut Tally {
        &mut self.notes.tally
    }

    /// Takes what arrived and gives up what will not; how many frames there were.
    ///
    /// # Errors
    /// The port's.
    #[inline]
    pub fn step(&mut self, port: &mut dyn PacketIo, now: Tsc) -> Result<usize, PortError> {
        let count = port.receive(BURST, &mut |frame| self.arrival(&frame))?;
        self.settle(now);
        Ok(count)
    }

    /// True when the sender has ended and every packet has its fate.
    pub fn is_done(&self) -> bool {
        self.window.has_ended() && self.window.published() == self.notes.head
    }

    /// One interval of which everything is known.
    pub fn closed_interval(&mut self, now: Tsc) -> Option<Interval> {
        let notes = &mut self.notes;
        let settled = if notes.head < self.window.published() {
            self.window.get(notes.head).sent
        } else {
            // A packet may be noted now that was stamped a moment ago.
            Tsc(now.0.saturating_sub(notes.bounds.late))
        };
        notes.tally.close(settled)
    }

    /// Moves on over packets whose fate is known, and decides it for those out of time.
    #[inline]
    pub fn settle(&mut self, now: Tsc) {
        let notes = &mut self.notes;
        notes.published = self.window.published();
        let before = notes.head;
        while notes.head < notes.published {
            let seq = notes.head;
            let at = notes.place(seq);
            if notes.fate(seq) == 0 {
                let sent = self.window.get(seq);
                let crowded = notes.published - seq > self.window.capacity() / 8 * 7;
                let out_of_time = now - sent.sent > notes.bounds.lost as i64;
                if !out_of_time && !crowded {
                    break;
                }
                notes.strays.given_up_early += u64::from(!out_of_time);
                notes.fates[at] = seq << 2 | LOST;
                notes.row(seq, sent, None, StampFlags::NONE);
            }
            notes.head += 1;
        }
        if notes.head != before {
            self.window.settle(notes.head);
        }
    }

    /// Nothing will arrive any more: all that is on its way is lost now.
    pub fn give_up(&mut self) {
        self.settle(Tsc(u64::MAX >> 1));
    }

    fn arrival(&mut self, frame: &Frame<'_>) {
        let (window, notes) = (&*self.window, &mut self.notes);
        let found = match &mut self.recognition {
            Recognition::Stamped(recognizer) => {
                recognizer.recognize(frame, |stamped| notes.known(window, stamped))
            }
            Recognition::Content(content) => notes.by_content(window, content, frame),
        };
        match found {
            Recognized::Packet { seq, intact } => {
                notes.arrived(window, seq, intact, frame.received)
            }
            Recognized::Damaged => notes.strays.damaged += 1,
            Recognized::Foreign => notes.strays.foreign += 1,
        }
    }
}

impl Notes {
    #[inline]
    fn place(&self, seq: u64) -> usize {
        seq as usize & (self.fates.len() - 1)
    }

    /// The packet that a stamp is of: all its fields are those that the sender noted. Of packets
    /// whose note is gone, by number alone; what arrives of them is only counted.
    #[inline]
    fn known(&self, window: &Window, stamped: &Stamped) -> Option<(u64, u32)> {
        let seq = self.full_number(window, stamped.seq)?;
        let Some(sent) = window.get_old(seq) else {
            return Some((seq, 0));
        };
        let same = stamped.flow == sent.flow as u16
            && stamped.intended == sent.intended.0 & ((1 << INTENDED_BITS) - 1)
            && stamped.lateness == lateness((sent.sent - sent.intended).max(0) as u64);
        same.then_some((seq, sent.len))
    }

    /// Of all numbers with these low bits, the nearest one before the next.
    #[inline]
    fn full_number(&self, window: &Window, low: u32) -> Option<u64> {
        let before = |published: u64| match (published as u32).wrapping_sub(low) {
            back @ 1..=0x8000_0000 => published.checked_sub(u64::from(back)),
            _ => None,
        };
        // A packet may be here before its number was looked at.
        before(self.published).or_else(|| before(window.published()))
    }

    /// The oldest packet on its way with this content; else the last that arrived, once more.
    fn by_content(
        &self,
        window: &Window,
        content: &mut ByContent,
        frame: &Frame<'_>,
    ) -> Recognized {
        let Some(class) = content.capture.class(frame.bytes) else {
            return Recognized::Foreign;
        };
        let passed = &mut content.passed[class as usize];
        let published = window.published();
        loop {
            let seq = content.capture.nth(class, *passed);
            if seq >= published {
                break;
            }
            if seq >= self.head && self.fate(seq) == 0 {
                return Recognized::Packet { seq, intact: true };
            }
            *passed += 1;
        }
        match passed.checked_sub(1) {
            Some(last) => Recognized::Packet {
                seq: content.capture.nth(class, last),
                intact: true,
            },
            None => Recognized::Foreign,
        }
    }

    #[inline]
    fn fate(&self, seq: u64) -> u64 {
        let noted = self.fates[self.place(seq)];
        if noted >> 2 == seq { noted & 3 } else { 0 }
    }

    #[inline]
    fn arrived(&mut self, window: &Window, seq: u64, intact: bool, received: Tsc) {
        let Some(sent) = window.get_old(seq) else {
            self.strays.too_old += 1;
            return;
        };
        let mut flags = if intact {
            StampFlags::NONE
        } else {
            StampFlags::CORRUPTED
        };
        match self.fate(seq) {
            0 => {
                let at = self.place(seq);
                self.fates[at] = seq << 2 | RECEIVED;
                let highest = &mut self.highest[sent.flow as usize];
                if seq < *highest {
                    flags |= StampFlags::REORDERED;
                }
                *highest = (*highest).max(seq + 1);
            }
            LOST => {
                self.strays.after_lost += 1;
                return;
            }
            _ => flags |= StampFlags::DUPLICATE,
        }
        self.row(seq, sent, Some(received), flags);
    }

    #[inline]
    fn row(&mut self, seq: u64, sent: Sent, received: Option<Tsc>, mut flags: StampFlags) {
        if sent.sent - sent.intended > self.bounds.late as i64 {
            flags |= StampFlags::LATE;
        }
        let stamp = Stamp {
            seq,
            flow: sent.flow,
            len: sent.len,
            intended: sent.intended,
            sent: sent.sent,
            received,
            flags,
        };
        self.tally.add(&stamp);
        if let Some(rows) = &mut self.rows {
            rows(&stamp);
        }
    }
}
