//! What calls counted, added up.
use crate::correct::Taken;
use crate::counts::{CallCount, LeftOut};
use hopscope_event::CounterCost;

/// Why calls are not in a sum, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LeftOutCalls([u64; LeftOut::ALL.len()]);

impl LeftOutCalls {
    fn add(&mut self, why: LeftOut) {
        self.0[why as usize] += 1;
    }

    pub fn add_all(&mut self, other: &LeftOutCalls) {
        self.0
            .iter_mut()
            .zip(other.0)
            .for_each(|(mine, theirs)| *mine += theirs);
    }

    /// Reasons that there were.
    pub fn reasons(&self) -> impl Iterator<Item = (LeftOut, u64)> {
        let all = LeftOut::ALL
            .into_iter()
            .map(|why| (why, self.0[why as usize]));
        all.filter(|(_, calls)| *calls > 0)
    }

    pub fn calls(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// A sum of counts as read, and what the probes counted in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CountSum {
    /// Calls in the sum.
    pub calls: u64,
    pub raw: i128,
    taken: Taken,
}

impl CountSum {
    fn add(&mut self, raw: i128, taken: Taken) {
        self.calls += 1;
        self.raw += raw;
        self.taken.biases += taken.biases;
        self.taken.pairs += taken.pairs;
    }

    /// Measured calls below these have added to it.
    pub fn has_callees(&self) -> bool {
        self.taken.pairs > 0
    }

    /// Without what the probes counted, by medians; `None` where that is not known. Where only the bias is known, what
    /// measured calls added to their callers stays in it.
    pub fn corrected(&self, cost: Option<&CounterCost>) -> Option<i128> {
        cost.map(|cost| self.taken.out_of_count(self.raw, self.calls, cost))
    }
}

impl Taken {
    /// A pair that is not known is taken for the bias of its call, which the call itself has read.
    fn out_of_count(self, raw: i128, calls: u64, cost: &CounterCost) -> i128 {
        let bias = i128::from(cost.bias[1]);
        match cost.pair {
            Some(pair) => self.out_of(raw, bias, pair.into()),
            None => raw - i128::from(calls) * bias,
        }
    }
}

impl CallCount {
    /// See [`CountSum::corrected`].
    pub fn total_corrected(&self, cost: Option<&CounterCost>) -> Result<Option<i128>, LeftOut> {
        let total = i128::from(self.total?);
        Ok(cost.map(|cost| self.in_total().out_of_count(total, 1, cost)))
    }

    pub fn own_corrected(&self, cost: Option<&CounterCost>) -> Result<Option<i128>, LeftOut> {
        let own = i128::from(self.own()?);
        Ok(cost.map(|cost| self.in_own().out_of_count(own, 1, cost)))
    }
}

/// What the calls of one row counted on one counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CounterStats {
    /// Ended calls of functions that have the counter: those in `own`, and those left out of it.
    pub calls: u64,
    /// Inclusive counts of outermost calls: recursion counts once.
    pub total: CountSum,
    pub own: CountSum,
    /// Calls of which no count is known.
    pub left_out: LeftOutCalls,
    /// Calls of which only the inclusive count is known.
    pub own_left_out: LeftOutCalls,
    /// Calls in `own` that called measured functions without this counter: what these counted is in it.
    pub mixed_calls: u64,
}

impl CounterStats {
    pub(crate) fn add(&mut self, count: &CallCount, outermost: bool) {
        self.calls += 1;
        let total = match count.total {
            Ok(total) => total,
            Err(why) => return self.left_out.add(why),
        };
        if outermost {
            self.total.add(total.into(), count.in_total());
        }
        match count.own() {
            Ok(own) => {
                self.own.add(own.into(), count.in_own());
                self.mixed_calls += u64::from(count.is_mixed());
            }
            Err(why) => self.own_left_out.add(why),
        }
    }
}
