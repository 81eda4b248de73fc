//! Connections that ended here, for two segment lifetimes (RFC 9293, 3.6.1), in a quarter of a kilobyte less than a connection takes.
use super::challenge::InvalidLimit;
use super::segment::Segment;
use super::seq::Seq;
use super::slab::Slab;
use super::tuple::Tuple;
use crate::Ns;

const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeWait {
    pub(crate) tuple: Tuple,
    pub(crate) hash: u32,
    pub(crate) snd_nxt: Seq,
    pub(crate) rcv_nxt: Seq,
    /// As in the header.
    pub(crate) window: u16,
    pub(crate) exclusive: bool,
    pub(crate) hop_limit: u8,
    pub(crate) traffic_class: u8,
    /// With timestamps: our clock's offset, the peer's last stamp, and when it came.
    pub(crate) stamps: Option<(u32, u32, Ns)>,
    pub(crate) invalid: InvalidLimit,
    pub(crate) expires: Ns,
    previous: u32,
    next: u32,
}

impl TimeWait {
    pub(crate) fn new(tuple: Tuple, hash: u32, snd_nxt: Seq, rcv_nxt: Seq) -> TimeWait {
        TimeWait {
            tuple,
            hash,
            snd_nxt,
            rcv_nxt,
            window: 0,
            exclusive: true,
            hop_limit: 64,
            traffic_class: 0,
            stamps: None,
            invalid: InvalidLimit::default(),
            expires: Ns(0),
            previous: NONE,
            next: NONE,
        }
    }
}

/// What to do about a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Drop,
    /// A reset at exactly the next number (RFC 5961, 3.2) ends it.
    Close,
    /// Acknowledge; `paws`: it failed RFC 7323's check.
    Acknowledge {
        paws: bool,
    },
    /// A new connection may take the place, with an ISS after `after` (RFC 6191; RFC 1122, 4.2.2.13).
    Reopen {
        after: Seq,
    },
}

/// In the order of expiry, which is the order of entry: all wait equally long.
#[derive(Debug)]
pub(crate) struct TimeWaits {
    slab: Slab<TimeWait>,
    first: u32,
    last: u32,
}

impl Default for TimeWaits {
    fn default() -> TimeWaits {
        TimeWaits {
            slab: Slab::default(),
            first: NONE,
            last: NONE,
        }
    }
}

impl TimeWaits {
    pub(crate) fn insert(&mut self, entry: TimeWait, expires: Ns) -> u32 {
        let index = self.slab.insert(TimeWait { expires, ..entry });
        self.link(index);
        index
    }

    pub(crate) fn remove(&mut self, index: u32) -> Option<TimeWait> {
        self.unlink(index);
        self.slab.remove(index)
    }

    pub(crate) fn get(&self, index: u32) -> Option<&TimeWait> {
        self.slab.get(index)
    }

    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut TimeWait> {
        self.slab.get_mut(index)
    }

    pub(crate) fn len(&self) -> usize {
        self.slab.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &TimeWait> {
        self.slab.iter()
    }

    pub(crate) fn next_expiry(&self) -> Option<Ns> {
        self.slab.get(self.first).map(|t| t.expires)
    }

    /// One whose time is over, by index.
    pub(crate) fn expired(&self, now: Ns) -> Option<u32> {
        let due = self.next_expiry().is_some_and(|at| at <= now);
        due.then_some(self.first)
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        self.slab.memory_bytes()
    }

    /// RFC 9293, 3.10.7.4, in TIME-WAIT; RFC 6191.
    pub(crate) fn arrives(
        &mut self,
        now: Ns,
        index: u32,
        segment: &Segment,
        expires: Ns,
    ) -> Verdict {
        let Some(entry) = self.slab.get_mut(index) else {
            return Verdict::Drop;
        };
        let paws = entry.fails_paws(segment);
        let flags = segment.flags;
        if flags.rst() {
            // What an old duplicate could do (RFC 1337) needs the exact number, too.
            let exact = segment.seq == entry.rcv_nxt;
            return if exact { Verdict::Close } else { Verdict::Drop };
        }
        if flags.syn() && flags.fin() || !flags.syn() && !flags.ack() {
            return Verdict::Drop;
        }
        if !paws && segment.seq == entry.rcv_nxt && segment.len() == 0 {
            entry.take_stamp(now, segment);
            self.restart(index, expires);
            return Verdict::Drop;
        }
        if flags.syn() && !flags.ack() && !paws && entry.is_newer(segment) {
            // As Linux: beyond all that the old connection's window could hold.
            let after = entry.snd_nxt + 65_535 + 2;
            return Verdict::Reopen { after };
        }
        if paws || flags.ack() {
            self.restart(index, expires);
        }
        Verdict::Acknowledge { paws }
    }

    fn restart(&mut self, index: u32, expires: Ns) {
        self.unlink(index);
        if let Some(entry) = self.slab.get_mut(index) {
            entry.expires = expires;
            self.link(index);
        }
    }

    fn link(&mut self, index: u32) {
        let last = self.last;
        if let Some(entry) = self.slab.get_mut(index) {
            (entry.previous, entry.next) = (last, NONE);
        }
        match self.slab.get_mut(last) {
            Some(before) => before.next = index,
            None => self.first = index,
        }
        self.last = index;
    }

    fn unlink(&mut self, index: u32) {
        let Some(&TimeWait { previous, next, .. }) = self.slab.get(index) else {
            return;
        };
        match self.slab.get_mut(previous) {
            Some(before) => before.next = next,
            None => self.first = next,
        }
        match self.slab.get_mut(next) {
            Some(after) => after.previous = previous,
            None => self.last = previous,
        }
    }
}

impl TimeWait {
    fn fails_paws(&self, segment: &Segment) -> bool {
        match (self.stamps, segment.timestamps()) {
            (Some((_, recent, _)), Some(stamps)) => {
                recent != 0 && recent.wrapping_sub(stamps.value) as i32 > 1
            }
            _ => false,
        }
    }

    fn is_newer(&self, segment: &Segment) -> bool {
        let stamp_newer = match (self.stamps, segment.timestamps()) {
            (Some((_, recent, _)), Some(stamps)) => stamps.value.wrapping_sub(recent) as i32 > 0,
            _ => false,
        };
        segment.seq.after(self.rcv_nxt) || stamp_newer
    }

    fn take_stamp(&mut self, now: Ns, segment: &Segment) {
        if let (Some((_, recent, at)), Some(stamps)) = (&mut self.stamps, segment.timestamps()) {
            *recent = stamps.value;
            *at = now;
        }
    }

    /// Whether connect may take its tuple (RFC 6191): the peer's PAWS refuses what is left of the old connection, if the clock has gone
    /// on for a second.
    pub(crate) fn may_be_reused(&self, now: Ns) -> bool {
        let second = Ns::from_ms(1_000);
        self.stamps.is_some_and(|(_, _, at)| now.since(at) > second)
    }
}
