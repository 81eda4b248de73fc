//! When sockets that nothing is redirected to any more may leave the map.
use crate::programs::End;
use std::collections::{HashMap, HashSet};

/// What is known, look after look, of ends whose messages all take TCP now.
#[derive(Default)]
pub(super) struct Drained {
    /// Nothing comes into their queues any more: no message was on its way there once since then, or nobody held the other
    /// end's psock, as each send does.
    settled: HashSet<u64>,
}

#[derive(Default)]
pub(super) struct State {
    /// Nothing lies in their queues, and nothing comes.
    pub release: Vec<u64>,
    /// Their connections have unread bytes, or may be about to.
    pub waits_for: Vec<End>,
    /// Their connections have none, and may only have calls that sleep: where messages on their way are not known, it
    /// cannot be told which calls these are, and they are not released.
    pub asleep: Vec<u64>,
}

impl Drained {
    pub(super) fn look(&mut self, ends: &[End]) -> State {
        let here = || ends.iter().filter(|end| end.is(End::JOINED));
        let by_cookie: HashMap<u64, &End> = here().map(|end| (end.cookie, end)).collect();
        // A client that has not sent yet does not know its server.
        let mut peers: HashMap<u64, u64> = HashMap::new();
        for end in here().filter(|end| end.is(End::SERVER)) {
            peers.insert(end.cookie, end.peer);
            peers.insert(end.peer, end.cookie);
        }
        let other_of = |end: &End| {
            let peer = peers.get(&end.cookie)?;
            by_cookie.get(peer).copied()
        };
        // Without an other end, its own users: a client may not know its server yet.
        let sender_to = |end: &End| other_of(end).copied().unwrap_or(*end);
        let mut state = State::default();
        for end in here() {
            let both = || std::iter::once(end).chain(other_of(end));
            // One with TCP's bytes in the same queue leaves that first (`Unseen`).
            let is_queued = both().any(|one| one.is(End::QUEUED | End::GATHERED));
            let is_settled = both().all(|one| self.settled.contains(&one.cookie));
            let may_sleep = both().all(|one| {
                let from = sender_to(one);
                self.settled.contains(&one.cookie) || (from.users > 0 && from.users <= from.asleep)
            });
            match (is_queued, is_settled, may_sleep) {
                (false, true, _) => state.release.push(end.cookie),
                (false, false, true) => state.asleep.push(end.cookie),
                _ => state.waits_for.push(*end),
            }
        }
        let settles = |end: &&End| !end.is(End::COMING) || sender_to(end).users == 0;
        self.settled
            .extend(here().filter(settles).map(|end| end.cookie));
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends() -> [End; 2] {
        let end = |cookie, peer, flags| End {
            cookie,
            peer,
            flags: flags | End::JOINED | End::COMING,
            ..End::default()
        };
        [end(1, 0, 0), end(2, 1, End::SERVER)]
    }

    #[test]
    fn nothing_is_released_while_a_send_may_be_under_way() {
        let mut drained = Drained::default();
        let mut two = ends();
        two[1].users = 1;
        for _ in 0..10 {
            let state = drained.look(&two);
            assert_eq!((state.release.len(), state.waits_for.len()), (0, 2));
        }
        two[1].users = 0;
        assert!(drained.look(&two).release.is_empty());
        // What it put there before it ended.
        two[0].flags |= End::QUEUED;
        assert!(drained.look(&two).release.is_empty());
        two[0].flags &= !End::QUEUED;
        two[1].users = 1;
        assert_eq!(drained.look(&two).release, [1, 2]);
    }

    #[test]
    fn sleepers_are_left() {
        let mut drained = Drained::default();
        let mut two = ends();
        (two[0].users, two[0].asleep) = (1, 1);
        drained.look(&two);
        let state = drained.look(&two);
        assert_eq!((state.release.len(), state.asleep.len()), (0, 2));
        two[0].flags |= End::QUEUED;
        assert_eq!(drained.look(&two).waits_for.len(), 2);
    }

    #[test]
    fn sleepers_are_released_where_nothing_is_on_its_way() {
        let mut drained = Drained::default();
        let mut two = ends();
        for end in &mut two {
            (end.users, end.asleep) = (1, 1);
        }
        two[0].flags &= !End::COMING;
        assert_eq!(drained.look(&two).release.len(), 0);
        assert_eq!(drained.look(&two).release.len(), 0);
        two[1].flags &= !End::COMING;
        assert_eq!(drained.look(&two).release.len(), 0);
        two[1].flags |= End::QUEUED;
        assert_eq!(drained.look(&two).release.len(), 0);
        two[1].flags &= !End::QUEUED;
        assert_eq!(drained.look(&two).release, [1, 2]);
    }
}
