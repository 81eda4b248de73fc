//! Which connections are accelerated, and which are released again: decided from repeated samples of both ends.
//!
//! A program must not be able to tell. At a socket in the map a receive that waits fails with EAGAIN whenever
//! something else than bytes wakes it (`tcp_bpf_recvmsg`), so only connections are joined of which both ends were
//! seen to receive with `O_NONBLOCK` set; and one of which an end clears it is released.
use crate::alone::Alone;
use crate::programs::{Accelerator, Count, End, Order, SpliceError};
use std::collections::{HashMap, HashSet};

/// Between so many looks each end has read something, while it could not wait.
const CALM_LOOKS: u32 = 2;
/// So many looks are one window of traffic: bytes that go one way only are not worth it in two in a row.
const WINDOW_LOOKS: u32 = 25;
const ONE_WAY_WINDOWS: u32 = 2;
const ONE_WAY_BYTES: u64 = 16 << 20;
/// Bytes of one end for each message of the other, at least.
const ONE_WAY_SHARE: u64 = 1 << 20;

/// Cookies of both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pair {
    pub client: u64,
    pub server: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Join(Pair),
    /// With a reason, or because an end has begun to.
    Leave(Pair, Option<Count>),
    Release(Pair),
}

#[derive(Debug, Clone, Copy, Default)]
struct Side {
    is_calm: bool,
    copied: u32,
    calm_looks: u32,
    bytes: u64,
    messages: u64,
    written: u32,
    /// Nothing comes into its queue any more.
    is_settled: bool,
}

#[derive(Debug, Default)]
struct Known {
    sides: [Side; 2],
    looks: u32,
    one_way_windows: u32,
}

/// What was seen so far of connections, by their servers' ends.
#[derive(Debug, Default)]
pub struct Joining {
    known: HashMap<u64, Known>,
    alone: Alone,
    /// Connections are accelerated at once, and an end may block.
    blocking: bool,
    across_users: bool,
}

impl Joining {
    pub fn new(blocking: bool, across_users: bool) -> Joining {
        Joining {
            blocking,
            across_users,
            ..Joining::default()
        }
    }

    /// To be called again and again, some milliseconds apart, with what is seen of all ends. `refused`: inodes of sockets of programs that take no
    /// part.
    ///
    /// # Errors
    /// The kernel does not say, or does not take what is decided.
    pub fn look(
        &mut self,
        accelerator: &Accelerator,
        ends: &[End],
        refused: &HashSet<u64>,
    ) -> Result<(), SpliceError> {
        let steps = self.decide(ends, refused);
        let alone = self.alone.look(ends).into_iter();
        let mut orders: Vec<_> = alone.map(|(end, order)| (end, order, None)).collect();
        let mut joins = Vec::new();
        for step in steps {
            let (pair, order, reason) = match step {
                Step::Join(pair) => {
                    joins.push(pair);
                    continue;
                }
                Step::Leave(pair, reason) => (pair, Order::Leave, reason),
                Step::Release(pair) => (pair, Order::Release, None),
            };
            orders.push((pair.client, order, None));
            orders.push((pair.server, order, reason));
        }
        if !orders.is_empty() {
            accelerator.order(&orders)?;
        }
        if !joins.is_empty() {
            join(accelerator, &joins)?;
        }
        Ok(())
    }

    fn decide(&mut self, ends: &[End], refused: &HashSet<u64>) -> Vec<Step> {
        let by_cookie: HashMap<u64, &End> = ends.iter().map(|end| (end.cookie, end)).collect();
        let mut steps = Vec::new();
        let mut seen = HashSet::new();
        for server in ends.iter().filter(|end| end.is(End::SERVER)) {
            let Some(client) = by_cookie.get(&server.peer) else {
                continue;
            };
            seen.insert(server.cookie);
            let pair = Pair {
                client: client.cookie,
                server: server.cookie,
            };
            let known = self.known.entry(server.cookie).or_default();
            let both = [*client, server];
            known.looks += 1;
            let is_refused = both.iter().any(|end| refused.contains(&end.inode));
            if both.iter().all(|end| end.is(End::JOINED)) {
                let leaves = known.joined(pair, both, self.blocking, self.across_users);
                let is_leaving = both.iter().all(|end| end.is(End::LEAVING));
                steps.extend(if is_refused && !is_leaving {
                    Some(Step::Leave(pair, Some(Count::ReleasedRefused)))
                } else {
                    leaves
                });
            } else if !self.blocking && !both.iter().any(|end| end.is(End::JOINED)) {
                let is_user = self.across_users || client.uid == server.uid;
                if known.is_calm(both) && is_user && !is_refused {
                    steps.push(Step::Join(pair));
                    *known = Known::default();
                }
            }
        }
        self.known.retain(|server, _| seen.contains(server));
        steps
    }
}

impl Known {
    /// Both ends received something between each of the last looks, and could not wait.
    fn is_calm(&mut self, both: [&End; 2]) -> bool {
        let mut is_calm = true;
        for (side, end) in self.sides.iter_mut().zip(both) {
            let now =
                !end.is(End::CAN_WAIT | End::NO_FILE | End::UNLIKE | End::CALLS | End::FIN_UNSEEN);
            if now && side.is_calm {
                side.calm_looks += u32::from(side.copied != end.copied)
            } else {
                side.calm_looks = 0
            }
            side.is_calm = now;
            side.copied = end.copied;
            is_calm &= side.calm_looks >= CALM_LOOKS;
        }
        is_calm
    }

    fn joined(
        &mut self,
        pair: Pair,
        both: [&End; 2],
        blocking: bool,
        across_users: bool,
    ) -> Option<Step> {
        if both.iter().all(|end| end.is(End::LEAVING)) {
            return self.leaving(both).then_some(Step::Release(pair));
        }
        let any = |flag| both.iter().any(|end| end.is(flag));
        let reason = if !blocking && any(End::CAN_WAIT) {
            Count::ReleasedBlocking
        } else if any(End::CALLS) {
            Count::ReleasedCalls
        } else if any(End::UNLIKE) {
            Count::ReleasedUnlike
        } else if !across_users && both[0].uid != both[1].uid {
            Count::ReleasedOtherUser
        } else if self.is_one_way(both) {
            Count::ReleasedBulk
        } else if any(End::LEAVING) {
            // Shut down.
            return Some(Step::Leave(pair, None));
        } else {
            return None;
        };
        Some(Step::Leave(pair, Some(reason)))
    }

    /// Whether nothing lies in either queue, nor comes: a message that is on its way is known (`COMING`). Where it is not,
    /// a send that began before holds its socket's psock until it has ended (`tcp_bpf_sendmsg`), so an end that nobody held
    /// once sends nothing there any more. A receive that sleeps holds its psock, and with it its queue, until it wakes.
    fn leaving(&mut self, both: [&End; 2]) -> bool {
        let was_settled = self.sides.iter().all(|side| side.is_settled);
        let others = both.iter().rev();
        for ((side, end), other) in self.sides.iter_mut().zip(both).zip(others) {
            side.is_settled |= !end.is(End::COMING) || other.users == 0;
        }
        was_settled && !both.iter().any(|end| end.is(End::QUEUED))
    }

    /// Long one-way transfers are faster by TCP, where the sender continues while the receiver copies.
    fn is_one_way(&mut self, both: [&End; 2]) -> bool {
        if self.looks % WINDOW_LOOKS != 1 {
            return false;
        }
        let mut bytes = [0; 2];
        let mut messages = [0; 2];
        for (n, (side, end)) in self.sides.iter_mut().zip(both).enumerate() {
            let by_tcp = u64::from(end.written.wrapping_sub(side.written));
            bytes[n] = end.direct.saturating_sub(side.bytes) + by_tcp;
            messages[n] = end.messages.saturating_sub(side.messages);
            side.bytes = end.direct;
            side.messages = end.messages;
            side.written = end.written;
        }
        // The first one only says where counting begins.
        let has_before = self.looks > WINDOW_LOOKS;
        let is_one = |from: usize| {
            bytes[from] >= ONE_WAY_BYTES && bytes[from] / (messages[1 - from] + 1) >= ONE_WAY_SHARE
        };
        if has_before && (is_one(0) || is_one(1)) {
            self.one_way_windows += 1
        } else {
            self.one_way_windows = 0
        }
        self.one_way_windows >= ONE_WAY_WINDOWS
    }
}

/// Both ends of each, one after the other: messages are redirected once both are in. What does not join is counted
/// by the kernel programs.
fn join(accelerator: &Accelerator, pairs: &[Pair]) -> Result<(), SpliceError> {
    // Places are given to whole connections: single ends would fill the map.
    let (pairs, over) = pairs.split_at(accelerator.room()?.min(pairs.len()));
    if !over.is_empty() {
        let out = |pair: &Pair| {
            [
                (pair.client, Order::Release, None),
                (pair.server, Order::Release, Some(Count::Full)),
            ]
        };
        let orders: Vec<_> = over.iter().flat_map(out).collect();
        accelerator.order(&orders)?;
    }
    let orders: Vec<_> = pairs
        .iter()
        .map(|pair| (pair.client, Order::Join, None))
        .collect();
    accelerator.order(&orders)?;
    let clients = joined(accelerator)?;
    let is_client_in = |pair: &&Pair| clients.contains(&pair.client);
    let orders: Vec<_> = pairs
        .iter()
        .filter(is_client_in)
        .map(|pair| (pair.server, Order::Join, None))
        .collect();
    accelerator.order(&orders)?;
    let all = joined(accelerator)?;
    let mut orders = Vec::new();
    for pair in pairs {
        let are_in = all.contains(&pair.client) && all.contains(&pair.server);
        // Nothing was redirected to an end that is in alone.
        let order = if are_in { Order::Open } else { Order::Release };
        orders.push((pair.client, order, None));
        orders.push((pair.server, order, None));
    }
    accelerator.order(&orders)
}

fn joined(accelerator: &Accelerator) -> Result<HashSet<u64>, SpliceError> {
    let ends = accelerator.ends_seen()?;
    let joined = ends.iter().filter(|end| end.is(End::JOINED));
    Ok(joined.map(|end| end.cookie).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAIR: Pair = Pair {
        client: 1,
        server: 2,
    };

    fn ends(copied: u32, flags: u32) -> Vec<End> {
        let end = |cookie, peer, flags| End {
            cookie,
            peer,
            copied,
            flags,
            ..End::default()
        };
        vec![end(1, 0, flags), end(2, 1, flags | End::SERVER)]
    }

    fn decide(joining: &mut Joining, ends: &[End]) -> Vec<Step> {
        joining.decide(ends, &HashSet::from([77]))
    }

    fn joined(flags: u32) -> Vec<End> {
        ends(0, flags | End::JOINED | End::OPEN)
    }

    #[test]
    fn ends_that_read_without_waiting_are_joined() {
        let mut joining = Joining::new(false, false);
        assert_eq!(decide(&mut joining, &ends(0, 0)), []);
        assert_eq!(decide(&mut joining, &ends(10, 0)), []);
        assert_eq!(decide(&mut joining, &ends(10, 0)), []);
        assert_eq!(decide(&mut joining, &ends(20, 0)), [Step::Join(PAIR)]);
    }

    #[test]
    fn ends_that_may_wait_are_not() {
        let mut joining = Joining::new(false, false);
        for copied in 0..10 {
            assert_eq!(decide(&mut joining, &ends(copied, End::CAN_WAIT)), []);
        }
        for copied in 0..10 {
            let mut one = ends(copied, 0);
            one[(copied % 2) as usize].flags |= End::CAN_WAIT;
            assert_eq!(decide(&mut joining, &one), []);
        }
        for copied in 0..10 {
            let mut one = ends(copied, 0);
            one[0].uid = 1000;
            assert_eq!(decide(&mut joining, &one), []);
        }
    }

    #[test]
    fn an_end_that_may_wait_again_leaves_once_nobody_sends() {
        let mut joining = Joining::new(false, false);
        assert_eq!(decide(&mut joining, &joined(0)), []);
        let mut now = joined(0);
        now[0].flags |= End::CAN_WAIT;
        assert_eq!(
            decide(&mut joining, &now),
            [Step::Leave(PAIR, Some(Count::ReleasedBlocking))]
        );
        let mut leaving = joined(End::LEAVING | End::COMING);
        leaving[1].users = 1;
        for _ in 0..10 {
            assert_eq!(decide(&mut joining, &leaving), []);
        }
        leaving[1].users = 0;
        leaving[0].flags |= End::QUEUED;
        assert_eq!(decide(&mut joining, &leaving), []);
        leaving[1].users = 1;
        assert_eq!(decide(&mut joining, &leaving), []);
        leaving[0].flags &= !End::QUEUED;
        assert_eq!(decide(&mut joining, &leaving), [Step::Release(PAIR)]);
    }

    #[test]
    fn a_connection_of_which_an_end_leaves_does_as_a_whole() {
        let mut joining = Joining::new(false, false);
        let mut both = joined(0);
        both[1].flags |= End::LEAVING;
        assert_eq!(decide(&mut joining, &both), [Step::Leave(PAIR, None)]);
    }

    #[test]
    fn whoever_always_sleeps_in_recv_is_released_once_nothing_comes() {
        let mut joining = Joining::new(true, false);
        let mut both = joined(End::LEAVING);
        for end in &mut both {
            (end.users, end.asleep) = (1, 1);
        }
        both[0].flags |= End::COMING;
        for _ in 0..10 {
            assert_eq!(decide(&mut joining, &both), []);
        }
        both[0].flags &= !End::COMING;
        assert_eq!(decide(&mut joining, &both), []);
        // What has come meanwhile.
        both[0].flags |= End::QUEUED;
        assert_eq!(decide(&mut joining, &both), []);
        both[0].flags &= !End::QUEUED;
        assert_eq!(decide(&mut joining, &both), [Step::Release(PAIR)]);
    }

    #[test]
    fn what_goes_one_way_leaves_and_questions_with_answers_stay() {
        for (answers, leaves) in [(0, true), (1 << 12, false)] {
            let mut joining = Joining::new(true, false);
            let mut now = joined(0);
            let mut steps = Vec::new();
            for _ in 0..WINDOW_LOOKS * (ONE_WAY_WINDOWS + 2) {
                now[0].direct += 2 << 20;
                now[0].messages += 32;
                now[1].messages += answers;
                steps.extend(decide(&mut joining, &now));
            }
            let expected = Step::Leave(PAIR, Some(Count::ReleasedBulk));
            assert_eq!(steps.contains(&expected), leaves, "{answers}");
        }
    }

    #[test]
    fn ends_with_calls_or_options_of_tcp_alone_are_not_joined_and_leave() {
        for (flag, reason) in [
            (End::CALLS, Count::ReleasedCalls),
            (End::UNLIKE, Count::ReleasedUnlike),
        ] {
            let mut joining = Joining::new(false, false);
            for copied in 0..10 {
                assert_eq!(decide(&mut joining, &ends(copied, flag)), []);
            }
            let leaves = Step::Leave(PAIR, Some(reason));
            assert_eq!(decide(&mut joining, &joined(flag)), [leaves]);
        }
    }

    #[test]
    fn ends_whose_device_is_not_watched_are_not_joined_and_stay() {
        let mut joining = Joining::new(false, false);
        for copied in 0..10 {
            let unseen = ends(copied, End::FIN_UNSEEN);
            assert_eq!(decide(&mut joining, &unseen), []);
        }
        assert_eq!(decide(&mut joining, &joined(End::FIN_UNSEEN)), []);
    }

    #[test]
    fn programs_that_take_no_part_are_not_joined_and_leave() {
        let mut joining = Joining::new(false, false);
        for copied in 0..10 {
            let mut one = ends(copied, 0);
            one[1].inode = 77;
            assert_eq!(decide(&mut joining, &one), []);
        }
        let mut one = joined(0);
        one[0].inode = 77;
        let leaves = Step::Leave(PAIR, Some(Count::ReleasedRefused));
        assert_eq!(decide(&mut joining, &one), [leaves]);
    }
}
