//! The tables as they grow.
use crate::plan::Plan;
use crate::recorder::rows::NewRows;

/// A plan, and how much of it sinks were told of.
pub(super) struct Rows {
    pub(super) plan: Plan,
    told: [usize; 4],
}

impl Rows {
    /// What it has by now is known.
    pub(super) fn of(plan: Plan) -> Rows {
        let told = lengths(&plan);
        Rows { plan, told }
    }

    /// What came since the last time.
    pub(super) fn take_new(&mut self) -> NewRows {
        let Rows { plan, told } = self;
        let [modules, functions, captures, refusals] = std::mem::replace(told, lengths(plan));
        NewRows {
            modules: plan.modules[modules..].to_vec(),
            functions: plan.functions[functions..].to_vec(),
            captures: plan.captures[captures..].to_vec(),
            refusals: plan.refusals[refusals..].to_vec(),
        }
    }
}

fn lengths(plan: &Plan) -> [usize; 4] {
    [
        plan.modules.len(),
        plan.functions.len(),
        plan.captures.len(),
        plan.refusals.len(),
    ]
}
