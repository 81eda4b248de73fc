//! Pieces of an answer that a program sends one right behind the other, a head and then a body, leave in one segment: a piece that another
//! one followed the last time waits for it, and so does the last one where the connection's end followed. The kernel cannot know that, and
//! sends each at once; here a segment costs a system call and the receiver's work. What waits leaves with the next call of the library,
//! whichever it is, and where a program computes instead with the ticker's next look; then nothing waits for a while.
//!
//! Where poll or epoll told the program of several sockets at once, a *round*, an answer to one waits for those to the others, too: they
//! leave with one system call, and the receiver is woken once. That lasts until the program asks for what else there is, or for [`HELD`].
use hopscope_stack_engine::Ns;

/// Longer than this nothing was to wait: no call of a server comes so late.
const LATE: Ns = Ns(100_000);
/// Answers wait for those of other events no longer, however soon calls follow each other.
const HELD: Ns = Ns(200_000);
/// Pieces that do not wait after one that has waited in vain; twice as many each time, and half as many after some that have not.
const RESTS_MIN: u32 = 64;
const RESTS_MAX: u32 = 65_536;
const SOME: u32 = 16;

#[derive(Debug, Default)]
pub struct Together {
    waits: Option<Wait>,
    /// How many pieces an answer had, of whichever connection.
    usual: u16,
    rests: u32,
    rests_next: u32,
    /// Since the last that has waited in vain, or since fewer are to rest.
    followed: u32,
    /// The call under way has let something wait.
    fresh: bool,
    /// Of what the program was told of at once: events whose answers are to come.
    round: usize,
}

#[derive(Debug, Clone, Copy)]
struct Wait {
    index: u32,
    since: Ns,
    /// The last call.
    seen: Ns,
}

/// Of a connection.
#[derive(Debug, Default)]
pub struct Pieces {
    /// That were sent since bytes were received.
    sent: u16,
    /// That were sent between bytes that were received before; 0: not known yet.
    usual: u16,
}

impl Pieces {
    /// Another one was sent; true: one more is expected. `usual`: of other connections.
    pub fn sent(&mut self, usual: u16) -> bool {
        self.sent = self.sent.saturating_add(1);
        let usual = if self.usual == 0 { usual } else { self.usual };
        self.sent < usual
    }

    /// A request came: how many pieces the answer before had.
    pub fn received(&mut self) -> Option<u16> {
        let sent = std::mem::take(&mut self.sent);
        if sent > 0 {
            self.usual = sent;
        }
        (sent > 0).then_some(sent)
    }

    /// Its end is the last piece, where one was sent before.
    pub fn closed(&self) -> Option<u16> {
        (self.sent > 0).then(|| self.sent.saturating_add(1))
    }
}

impl Together {
    pub fn usual(&self) -> u16 {
        self.usual
    }

    pub fn set_usual(&mut self, pieces: u16) {
        self.usual = pieces;
    }

    /// The program was told of so many.
    pub fn begin_round(&mut self, events: usize) {
        self.round = events;
    }

    /// In a round: a connection that was accepted is one more.
    pub fn add_event(&mut self) {
        self.round += usize::from(self.round > 0);
    }

    /// The last piece of an answer; true: those of other events are to follow.
    pub fn answered(&mut self) -> bool {
        self.round = self.round.saturating_sub(1);
        self.round > 0
    }

    /// Whether a piece of this description that something is expected behind may wait: beside another one's in a round alone.
    pub fn may_wait(&mut self, index: u32) -> bool {
        let rests = self.rests > 0;
        self.rests -= u32::from(rests);
        !rests && (self.round > 0 || self.waits.is_none_or(|wait| wait.index == index))
    }

    pub fn wait(&mut self, index: u32, now: Ns) {
        let since = self.waits.map_or(now, |wait| wait.since);
        self.waits = Some(Wait {
            index,
            since,
            seen: now,
        });
        self.fresh = true;
    }

    /// What waits goes on waiting at the end of a call that has nothing to do with it.
    pub fn holds(&mut self, now: impl FnOnce() -> Ns) -> bool {
        let Some(wait) = self.waits.as_mut().filter(|_| self.round > 0) else {
            return false;
        };
        let now = now();
        let holds = now.since(wait.since) <= HELD && now.since(wait.seen) <= LATE;
        if holds {
            wait.seen = now;
        }
        holds
    }

    /// What waited has gone.
    pub fn gone(&mut self, now: Ns) {
        let Some(wait) = self.waits.take() else {
            return;
        };
        if now.since(wait.seen) > LATE {
            self.rests = self.rests_next.clamp(RESTS_MIN, RESTS_MAX);
            self.rests_next = self.rests * 2;
            self.followed = 0;
            return;
        }
        self.followed += 1;
        if self.followed == SOME {
            self.followed = 0;
            self.rests_next /= 2;
        }
    }

    pub fn waits(&self) -> bool {
        self.waits.is_some()
    }

    /// At the end of a call: it has let something wait.
    pub fn has_begun(&mut self) -> bool {
        std::mem::take(&mut self.fresh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pieces that are expected to be followed, of so many.
    fn answer(of: &mut Pieces, usual: u16, pieces: usize) -> Vec<bool> {
        (0..pieces).map(|_| of.sent(usual)).collect()
    }

    #[test]
    fn a_piece_waits_where_another_one_followed_the_last_time() {
        let mut of = Pieces::default();
        assert_eq!(answer(&mut of, 0, 2), [false, false]);
        assert_eq!(of.received(), Some(2));
        assert_eq!(answer(&mut of, 0, 2), [true, false]);
        assert_eq!(of.received(), Some(2));
        assert_eq!(answer(&mut of, 0, 1), [true]);
        assert_eq!(of.received(), Some(1));
        assert_eq!(answer(&mut of, 0, 1), [false]);
        // A request in two pieces.
        assert_eq!((of.received(), of.received()), (Some(1), None));
    }

    #[test]
    fn an_end_is_a_piece() {
        let mut of = Pieces::default();
        assert_eq!(of.closed(), None);
        assert_eq!(answer(&mut of, 0, 2), [false, false]);
        assert_eq!(of.closed(), Some(3));
        assert_eq!((of.received(), of.closed()), (Some(2), None));
    }

    #[test]
    fn a_new_connection_is_as_others_were() {
        assert_eq!(answer(&mut Pieces::default(), 3, 3), [true, true, false]);
    }

    #[test]
    fn what_has_waited_in_vain_is_not_waited_for_again_soon() {
        let mut together = Together::default();
        let mut gone = |after: u64| {
            together.wait(0, Ns(1_000));
            together.gone(Ns(1_000 + after));
            std::mem::take(&mut together.rests)
        };
        let late = LATE.0 + 1;
        let rests = [LATE.0, late, late, 10 * late].map(&mut gone);
        assert_eq!(rests, [0, RESTS_MIN, 2 * RESTS_MIN, 4 * RESTS_MIN]);
        (0..20).for_each(|_| _ = gone(late));
        assert_eq!(gone(late), RESTS_MAX);
        (0..20 * SOME).for_each(|_| assert_eq!(gone(LATE.0), 0));
        assert_eq!(gone(late), RESTS_MIN);
    }

    #[test]
    fn answers_of_a_round_wait_for_each_other() {
        let mut together = Together::default();
        let at = |us: u64| move || Ns(us * 1_000);
        assert!(!together.answered() && !together.holds(at(0)));
        together.begin_round(3);
        assert!(together.answered() && together.may_wait(1));
        together.wait(1, at(0)());
        assert!(together.has_begun() && !together.has_begun());
        // Another connection's, and calls in between.
        assert!(together.may_wait(2) && together.holds(at(90)) && together.holds(at(190)));
        assert!(together.answered() && together.holds(at(199)) && !together.holds(at(201)));
        together.gone(at(201)());
        assert_eq!((together.waits(), together.rests), (false, 0));
        // The last one has none to wait for.
        assert!(!together.answered());
    }

    #[test]
    fn a_round_of_a_program_that_computes_is_not_waited_for() {
        let mut together = Together::default();
        together.begin_round(9);
        together.wait(1, Ns(0));
        assert!(!together.holds(|| Ns(LATE.0 + 1)));
        together.gone(Ns(LATE.0 + 1));
        assert!(!together.may_wait(1));
        assert_eq!(together.rests, RESTS_MIN - 1);
    }
}
