//! What is under way on one socket: numbered in the order of sending, answered in any.
use std::collections::VecDeque;

/// A datagram that was sent and not answered yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flight {
    pub(super) number: u64,
    pub(super) due_ns: u64,
    pub(super) sent_ns: u64,
    answered: bool,
}

/// Whose answer it is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The first one; `late`: a later datagram was answered before.
    Open { flight: Flight, late: bool },
    /// Answered before, or not waited for any more.
    Again,
    /// Never sent.
    Foreign,
}

#[derive(Default)]
pub(super) struct Flights {
    sent: u64,
    /// Without gaps in their numbers; answered ones leave from the front.
    open: VecDeque<Flight>,
    /// One more than the highest number that was answered.
    answered_until: u64,
}

impl Flights {
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// The next datagram's number: used up once it was sent.
    pub(super) fn next_number(&self) -> u64 {
        self.sent
    }

    /// The next datagram was sent, and is waited for or not.
    pub(super) fn sent(&mut self, due_ns: u64, sent_ns: u64, answered: bool) {
        if !answered {
            self.open.push_back(Flight {
                number: self.sent,
                due_ns,
                sent_ns,
                answered,
            });
        }
        self.sent += 1;
    }

    /// An answer with this number came, or one without any.
    pub(super) fn answer(&mut self, number: Option<u64>) -> Answer {
        let Some(number) = number.filter(|n| *n < self.sent) else {
            return Answer::Foreign;
        };
        let first = self.open.front().map_or(self.sent, |flight| flight.number);
        let at = number.checked_sub(first).map(|at| at as usize);
        let flight = at.and_then(|at| self.open.get_mut(at));
        let Some(flight) = flight.filter(|flight| !flight.answered) else {
            return Answer::Again;
        };
        flight.answered = true;
        let flight = *flight;
        let late = number + 1 < self.answered_until;
        self.answered_until = self.answered_until.max(number + 1);
        while self.open.front().is_some_and(|flight| flight.answered) {
            self.open.pop_front();
        }
        Answer::Open { flight, late }
    }

    /// The oldest of those that were sent before this time, given up; `None`: there are no more.
    pub(super) fn give_up(&mut self, sent_ns: u64) -> Option<Flight> {
        loop {
            let old = |flight: &Flight| flight.answered || flight.sent_ns < sent_ns;
            self.open.front().filter(|flight| old(flight))?;
            let flight = self.open.pop_front().filter(|flight| !flight.answered);
            if flight.is_some() {
                return flight;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(answer: &Answer) -> Option<(u64, bool)> {
        match answer {
            Answer::Open { flight, late } => Some((flight.number, *late)),
            _ => None,
        }
    }

    /// Found by a guest whose network stood still: two sends in 9,438 failed (EAGAIN), and each answer behind them
    /// was held against the datagram two further on.
    #[test]
    fn what_could_not_be_sent_leaves_no_gap() {
        let mut flights = Flights::default();
        let mut sent = Vec::new();
        for n in 0..100 {
            let number = flights.next_number();
            // Each third fails, and the next one has its number.
            if n % 3 != 2 {
                flights.sent(n, n, false);
                sent.push(number);
            }
        }
        assert!(sent.iter().copied().eq(0..sent.len() as u64));
        for expected in sent {
            let answer = flights.answer(Some(expected));
            assert_eq!(number(&answer), Some((expected, false)));
        }
        assert!(flights.is_empty());
    }

    #[test]
    fn each_answer_counts_once_and_late_ones_are_told() {
        let mut flights = Flights::default();
        (0..4).for_each(|n| flights.sent(n, n, false));
        assert_eq!(number(&flights.answer(Some(2))), Some((2, false)));
        assert_eq!(number(&flights.answer(Some(0))), Some((0, true)));
        assert_eq!(flights.answer(Some(0)), Answer::Again, "it left");
        assert_eq!(flights.answer(Some(2)), Answer::Again, "it is still there");
        assert_eq!(flights.answer(Some(4)), Answer::Foreign);
        assert_eq!(flights.answer(None), Answer::Foreign);
        // Sent before 3: the first is 1; 2 was answered.
        assert_eq!(flights.give_up(3).map(|flight| flight.number), Some(1));
        assert_eq!(flights.give_up(3), None);
        assert_eq!(flights.answer(Some(1)), Answer::Again, "given up");
        assert_eq!(number(&flights.answer(Some(3))), Some((3, false)));
        assert_eq!(flights.answer(Some(3)), Answer::Again, "nothing is open");
    }
}
