//! Transmissions in the order in which they were made, so that RACK finds those before another without a look at all that is in flight.
use super::entry::{EntryState, Order};
use super::scoreboard::Scoreboard;
use crate::Ns;
use crate::tcp::seq::SeqRange;
use std::collections::VecDeque;

/// Records that an idle connection may keep allocated.
const KEPT_RECORDS: usize = 16;

/// What of `range` arrived, was lost or was sent again since is found out only when the record comes to the front.
#[derive(Debug, Clone, Copy)]
pub(super) struct Transmission {
    pub(super) range: SeqRange,
    pub(super) at: Ns,
    pub(super) order: Order,
}

#[derive(Debug, Default)]
pub(super) struct SendLog {
    records: VecDeque<Transmission>,
}

impl SendLog {
    pub(super) fn push(&mut self, record: Transmission, board: &Scoreboard) {
        // As many records as twice the entries, or half of them are of no use any more.
        if self.records.len() > KEPT_RECORDS + 2 * board.len() {
            self.records
                .retain(|r| board.in_flight_since(r.range, r.order).is_some());
        }
        self.records.push_back(record);
    }

    /// The oldest transmission of which something is still in flight.
    pub(super) fn oldest(&mut self, board: &Scoreboard) -> Option<Transmission> {
        while let Some(record) = self.records.front() {
            if board.in_flight_since(record.range, record.order).is_some() {
                return Some(*record);
            }
            self.records.pop_front();
        }
        None
    }

    pub(super) fn clear(&mut self) {
        self.records.clear();
        self.records.shrink_to(KEPT_RECORDS);
    }

    /// From what is in flight now: after marks of loss were taken back.
    pub(super) fn rebuild(&mut self, board: &Scoreboard) {
        self.records.clear();
        let in_flight = board
            .entries()
            .filter(|e| e.state == EntryState::InFlight)
            .map(|e| Transmission {
                range: e.range(),
                at: e.sent_at,
                order: e.order,
            });
        self.records.extend(in_flight);
        let newest = self.records.back().map_or(Order::default(), |r| r.order);
        self.records
            .make_contiguous()
            .sort_by_key(|r| r.order.since(newest));
    }
}
