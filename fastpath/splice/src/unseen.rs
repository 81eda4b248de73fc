//! Which readers are to be told once more of what they can read. A receive that reads the last redirected bytes returns
//! less than was asked for, although TCP's are behind them, and their edge (EPOLLET) was given when they came.
use crate::edges::Edges;
use crate::programs::End;
use std::collections::{HashMap, HashSet};

/// What the other end had redirected at the last look.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    direct: u64,
    /// The other end is gone: it may have redirected something behind the look before.
    is_alone: bool,
    /// No send was under way: all of it was in this end's queue.
    is_settled: bool,
    /// Of it, what this end has read before it was told.
    told: u64,
}

/// What is known of ends, by their cookies.
#[derive(Debug, Default)]
pub(crate) struct Unseen {
    known: HashMap<u64, Known>,
    /// Network namespaces whose turn has not come yet.
    waiting: HashSet<u64>,
}

impl Unseen {
    /// To be called with each look at all ends. What is released after it may be released.
    pub(crate) fn look(&mut self, ends: &[End], edges: &mut Edges) {
        let more = self.decide(ends);
        self.waiting.extend(more);
        let busy = edges.busy();
        let now: Vec<u64> = self.waiting.difference(busy).copied().collect();
        self.waiting.retain(|namespace| busy.contains(namespace));
        edges.give(now.into_iter());
    }

    /// Network namespaces where somebody is still to be told.
    pub(crate) fn owes(&self, edges: &mut Edges) -> usize {
        edges.busy().union(&self.waiting).count()
    }

    /// Whoever tells goes on without us.
    pub(crate) fn leave(&mut self, edges: &mut Edges) {
        edges.give(self.waiting.drain());
    }

    /// Network namespaces of ends that are to be told.
    fn decide(&mut self, ends: &[End]) -> HashSet<u64> {
        let here = || ends.iter().filter(|end| end.is(End::JOINED));
        let by_cookie: HashMap<u64, &End> = here().map(|end| (end.cookie, end)).collect();
        // A client that has not sent yet does not know its server.
        let mut peers = HashMap::new();
        for server in here().filter(|end| end.is(End::SERVER)) {
            peers.insert(server.cookie, server.peer);
            peers.insert(server.peer, server.cookie);
        }
        let mut namespaces = HashSet::new();
        let mut known = HashMap::new();
        for end in here() {
            let peer = peers.get(&end.cookie).and_then(|peer| by_cookie.get(peer));
            let before = self.known.remove(&end.cookie).unwrap_or_default();
            let mut now = before.next(peer.copied());
            // Where both come into one queue, what is not there is put there so, and ends it once all is read.
            if end.is(End::GATHERED) {
                namespaces.insert(end.netns);
            }
            let may_owe = !end.is(End::QUEUED) && end.is(End::UNREAD);
            if may_owe && now.direct > before.told {
                namespaces.insert(end.netns);
                if before.is_settled {
                    now.told = before.direct;
                }
            }
            known.insert(end.cookie, now);
        }
        self.known = known;
        namespaces
    }
}

impl Known {
    fn next(self, peer: Option<&End>) -> Known {
        let last = self.direct + u64::from(!self.is_alone);
        Known {
            direct: peer.map_or(last, |peer| peer.direct),
            is_alone: peer.is_none(),
            is_settled: peer.is_none_or(|peer| peer.users <= peer.asleep),
            told: self.told,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(direct: u64, users: u32, flags: u32) -> [End; 2] {
        let end = |cookie, peer, flags| End {
            cookie,
            peer,
            netns: 7,
            flags: flags | End::JOINED,
            ..End::default()
        };
        let mut client = end(1, 0, 0);
        (client.direct, client.users) = (direct, users);
        [client, end(2, 1, End::SERVER | flags)]
    }

    #[test]
    fn a_reader_is_told_once_that_there_is_more() {
        let mut unseen = Unseen::default();
        let mut is_told =
            |direct, users, flags| !unseen.decide(&ends(direct, users, flags)).is_empty();
        assert!(!is_told(100, 0, 0));
        assert!(!is_told(100, 0, End::QUEUED));
        assert!(!is_told(100, 0, End::QUEUED | End::UNREAD));
        assert!(is_told(100, 0, End::UNREAD));
        for _ in 0..10 {
            assert!(!is_told(100, 0, End::UNREAD));
        }
        // Redirected once more, and by TCP again.
        assert!(!is_told(200, 0, 0));
        assert!(!is_told(200, 0, End::QUEUED | End::UNREAD));
        assert!(is_told(200, 0, End::UNREAD));
        assert!(!is_told(200, 0, End::UNREAD));
    }

    #[test]
    fn a_message_on_its_way_is_not_taken_for_read() {
        let mut unseen = Unseen::default();
        let mut is_told =
            |direct, users, flags| !unseen.decide(&ends(direct, users, flags)).is_empty();
        for _ in 0..10 {
            assert!(is_told(100, 1, End::UNREAD));
        }
        assert!(is_told(100, 0, End::UNREAD));
        assert!(is_told(100, 0, End::UNREAD));
        assert!(!is_told(100, 0, End::UNREAD));
    }

    #[test]
    fn bytes_of_tcp_alone_are_told_of_by_tcp() {
        let mut unseen = Unseen::default();
        assert!(unseen.decide(&ends(0, 0, End::UNREAD)).is_empty());
    }

    #[test]
    fn what_an_end_redirected_before_it_went_is_told_of() {
        let mut unseen = Unseen::default();
        assert!(unseen.decide(&ends(0, 0, End::QUEUED)).is_empty());
        let reader = |flags| [ends(0, 0, flags)[1]];
        assert!(unseen.decide(&reader(End::QUEUED | End::UNREAD)).is_empty());
        assert!(!unseen.decide(&reader(End::UNREAD)).is_empty());
        assert!(unseen.decide(&reader(End::UNREAD)).is_empty());
    }
}
