//! How long the loop goes on looking before it sleeps, as KVM does before a guest's processor is halted (halt_poll_ns): to be
//! woken up costs both ends some microseconds. It grows where a sleep turns out to be short, and ends where looking does not help.
use crate::Ns;

const LEAST: Ns = Ns::from_us(10);
const MOST: Ns = Ns::from_us(50);
/// Looks in vain, in a row, after which the other end is taken to need the processor that looking takes.
const VAIN_MAX: u32 = 8;
const REST_LEAST: Ns = Ns::from_ms(10);
const REST_MOST: Ns = Ns::from_ms(1_000);

#[derive(Default)]
pub(super) struct Linger {
    length: Ns,
    /// Since when nothing was to be done, if that is so.
    idle_since: Option<Ns>,
    vain: u32,
    rest: Ns,
    rests_until: Ns,
}

impl Linger {
    /// After a turn; true: look on.
    pub(super) fn goes_on(&mut self, now: Ns, busy: bool) -> bool {
        if busy {
            if self.idle_since.take().is_some() && self.length > Ns(0) {
                (self.vain, self.rest) = (0, Ns(0));
            }
            return true;
        }
        let since = *self.idle_since.get_or_insert(now);
        now.since(since) < self.length
    }

    /// After a sleep.
    pub(super) fn slept(&mut self, now: Ns) {
        let Some(since) = self.idle_since.take() else {
            return;
        };
        if self.length > Ns(0) {
            self.vain += 1;
        }
        if self.vain >= VAIN_MAX {
            self.rest = Ns((self.rest.0 * 2).clamp(REST_LEAST.0, REST_MOST.0));
            self.rests_until = now + self.rest;
            self.vain = 0;
        }
        let is_short = now.since(since) < MOST && now >= self.rests_until;
        self.length = match is_short {
            true => Ns((self.length.0 * 2).clamp(LEAST.0, MOST.0)),
            false => Ns(0),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: u64) -> Ns {
        Ns::from_us(us)
    }

    /// Idle from `at` on, asleep, and woken up `after` it.
    fn sleep(linger: &mut Linger, at: Ns, after: Ns) -> Ns {
        assert!(!linger.goes_on(at, false) || linger.length > Ns(0));
        linger.slept(at + after);
        at + after
    }

    #[test]
    fn short_sleeps_are_looked_through() {
        let mut linger = Linger::default();
        assert!(!linger.goes_on(us(0), false), "at first it sleeps at once");
        linger.slept(us(20));
        assert!(linger.goes_on(us(21), true));
        assert!(linger.goes_on(us(22), false));
        assert!(linger.goes_on(us(31), false));
        assert!(!linger.goes_on(us(32), false));
        linger.slept(us(60));
        assert_eq!(linger.length, us(20));
        sleep(&mut linger, us(100), us(1_000));
        assert_eq!(linger.length, Ns(0), "a long sleep ends it");
    }

    #[test]
    fn where_looking_never_helps_it_ends() {
        let (mut linger, mut now) = (Linger::default(), us(0));
        let mut looked = 0;
        for _ in 0..10_000 {
            now = sleep(&mut linger, now, us(30));
            linger.goes_on(now, true);
            looked += u64::from(linger.length > Ns(0));
        }
        assert!(looked < 500, "{looked} of 10,000");
    }

    #[test]
    fn what_helps_goes_on() {
        let (mut linger, mut now) = (Linger::default(), us(0));
        sleep(&mut linger, now, us(20));
        for _ in 0..10_000 {
            now = now + us(20);
            assert!(linger.goes_on(now, true));
            assert!(linger.goes_on(now + us(5), false));
        }
        assert_eq!(linger.length, us(10));
    }
}
