//! Spans that overlap, laid on as few tracks as they need: on one track slices must nest.

/// More would be no picture any more.
pub(super) const LANES_MAX: usize = 1024;

/// Spans come roughly by their ends.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    /// Where each lane is free from.
    free_from: Vec<u64>,
}

impl Lanes {
    pub(super) fn len(&self) -> usize {
        self.free_from.len()
    }

    /// The lane for a span, the fullest that has room for it; `None` when there are too many.
    pub(super) fn place(&mut self, start: u64, end: u64) -> Option<usize> {
        let free = |(_, from): &(usize, &u64)| **from <= start;
        let fits = self.free_from.iter().enumerate().filter(free);
        let lane = match fits.max_by_key(|(lane, from)| (**from, std::cmp::Reverse(*lane))) {
            Some((lane, _)) => lane,
            None if self.free_from.len() < LANES_MAX => {
                self.free_from.push(0);
                self.free_from.len() - 1
            }
            None => return None,
        };
        self.free_from[lane] = end.max(start);
        Some(lane)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_a_lane_do_not_overlap() {
        let mut lanes = Lanes::default();
        let placed = [(0, 10), (5, 12), (10, 20), (12, 21), (13, 22), (22, 23)]
            .map(|(start, end)| lanes.place(start, end));
        assert_eq!(placed, [0, 1, 0, 1, 2, 2].map(Some));
        for n in 3..LANES_MAX {
            assert_eq!(lanes.place(13, 100), Some(n));
        }
        assert_eq!(lanes.place(13, 100), None);
    }
}
