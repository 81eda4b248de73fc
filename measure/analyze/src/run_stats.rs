//! What runs spend their time on, function by function.
use crate::distribution::Distribution;
use crate::run::Run;
use crate::{Correction, Index, Measured};
use hopscope_event::{FunctionId, ProbeCost};

/// Statistics over complete runs. Ticks.
#[derive(Debug)]
pub struct RunStats {
    correction: Option<Correction>,
    /// Complete runs that were added; others are only counted.
    pub runs: u64,
    pub incomplete: u64,
    /// From begin to end, as measured; and with the probes' cost taken out, where it is known.
    pub length: Distribution,
    pub length_corrected: Distribution,
    pub ticks: i128,
    pub ticks_corrected: i128,
    pub calls: u64,
    /// Runs in which the thread was off the CPU for some time, and how long.
    pub off_cpu_runs: u64,
    pub off_cpu_ticks: u128,
    /// From begin to end of those runs, as measured.
    pub off_cpu_runs_ticks: i128,
    functions: Vec<Part>,
    /// Functions of the run that is looked at.
    touched: Vec<FunctionId>,
    /// The callers of the call that is looked at.
    path: Vec<FunctionId>,
}

/// One function's part in the runs. Times are per run: the sum over its calls in that run.
#[derive(Debug, Clone, Default)]
pub struct PartInRuns {
    /// Runs in which it was called.
    pub runs: u64,
    pub calls: u64,
    /// Inclusive, each outermost call once, as measured.
    pub total: Distribution,
    pub total_ticks: i128,
    /// Without its measured callees; corrected where the probe cost is known.
    pub own: Distribution,
    pub own_ticks: i128,
    pub off_cpu_ticks: u128,
}

#[derive(Debug, Default)]
struct Part {
    sum: Option<Box<PartInRuns>>,
    calls: u64,
    total: i64,
    own: i64,
    off_cpu: u64,
    on_path: u32,
}

impl RunStats {
    pub fn new(index: &Index, probe_cost: Option<ProbeCost>) -> RunStats {
        RunStats {
            correction: probe_cost.map(Correction::new),
            runs: 0,
            incomplete: 0,
            length: Distribution::default(),
            length_corrected: Distribution::default(),
            ticks: 0,
            ticks_corrected: 0,
            calls: 0,
            off_cpu_runs: 0,
            off_cpu_ticks: 0,
            off_cpu_runs_ticks: 0,
            functions: (0..index.functions()).map(|_| Part::default()).collect(),
            touched: Vec::new(),
            path: Vec::new(),
        }
    }

    pub fn is_corrected(&self) -> bool {
        self.correction.is_some()
    }

    /// A run's length with the probes' cost taken out, when that is known.
    pub fn corrected(&self, run: &Run) -> i64 {
        // Of the first call's pair the part before its entry stamp lies outside, of the last one's
        // the part after its exit stamp: together with the others, one bias and all other pairs.
        let (mut first, mut others) = (false, Measured::NONE);
        for (n, call) in run.calls.iter().enumerate() {
            match n {
                0 => first = call.fused,
                _ => others += Measured::one(call.fused),
            }
        }
        let corrected = |c: &Correction| c.inclusive(run.ticks(), first, others);
        self.correction.as_ref().map_or(run.ticks(), corrected)
    }

    pub fn add(&mut self, run: &Run) {
        if !run.complete {
            self.incomplete += 1;
            return;
        }
        let corrected = self.corrected(run);
        self.runs += 1;
        self.calls += run.calls.len() as u64;
        self.length.record(run.ticks());
        self.length_corrected.record(corrected);
        self.ticks += i128::from(run.ticks());
        self.ticks_corrected += i128::from(corrected);
        if run.off_cpu_ticks > 0 {
            self.off_cpu_runs += 1;
            self.off_cpu_runs_ticks += i128::from(run.ticks());
        }
        self.off_cpu_ticks += u128::from(run.off_cpu_ticks);
        for call in &run.calls {
            // Calls are in order of entry: those on the path from here inwards have ended.
            while self.path.len() > usize::from(call.depth) {
                if let Some(ended) = self.path.pop() {
                    self.functions[ended.0 as usize].on_path -= 1;
                }
            }
            let part = &mut self.functions[call.function.0 as usize];
            if part.calls == 0 {
                self.touched.push(call.function);
            }
            part.calls += 1;
            part.own += call.own_corrected;
            if part.on_path == 0 {
                part.total += call.ticks();
                part.off_cpu += call.off_cpu_ticks;
            }
            part.on_path += 1;
            self.path.push(call.function);
        }
        while let Some(ended) = self.path.pop() {
            self.functions[ended.0 as usize].on_path -= 1;
        }
        for function in self.touched.drain(..) {
            self.functions[function.0 as usize].settle();
        }
    }

    /// Functions that were called in a run.
    pub fn parts(&self) -> impl Iterator<Item = (FunctionId, &PartInRuns)> {
        let parts = self.functions.iter().enumerate();
        parts.filter_map(|(id, p)| Some((FunctionId(id as u32), p.sum.as_deref()?)))
    }
}

impl Part {
    fn settle(&mut self) {
        let sum = self.sum.get_or_insert_default();
        sum.runs += 1;
        sum.calls += std::mem::take(&mut self.calls);
        let (total, own) = (
            std::mem::take(&mut self.total),
            std::mem::take(&mut self.own),
        );
        sum.total.record(total);
        sum.total_ticks += i128::from(total);
        sum.own.record(own);
        sum.own_ticks += i128::from(own);
        sum.off_cpu_ticks += u128::from(std::mem::take(&mut self.off_cpu));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::RunIx;
    use hopscope_event::{ThreadIx, Tsc};

    #[test]
    fn off_cpu_time_is_of_the_runs_that_had_some() {
        let mut stats = RunStats::new(&Index::new(&[], &[]), None);
        for (ix, (ticks, off_cpu_ticks)) in
            [(100, 0), (1_000, 250), (300, 0)].into_iter().enumerate()
        {
            stats.add(&Run {
                ix: RunIx(ix as u64),
                thread: ThreadIx(0),
                root: FunctionId(0),
                start: Tsc(0),
                end: Tsc(ticks),
                complete: true,
                calls: Vec::new(),
                values: Vec::new(),
                off_cpu_ticks,
                calls_left_out: 0,
                outside: Vec::new(),
            });
        }
        assert_eq!((stats.off_cpu_runs, stats.off_cpu_ticks), (1, 250));
        assert_eq!((stats.off_cpu_runs_ticks, stats.ticks), (1_000, 1_400));
    }
}
