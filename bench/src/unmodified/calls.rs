//! A call on a descriptor of the kernel, in a program that has the library and in one that has not.
use super::Bench;
use super::rounds::Turn;
use super::ways::Way;
use crate::error::{Error, Result};
use crate::program::run_as;
use crate::stack::network::{Cables, STACK, client_in};
use std::path::Path;

pub(super) fn measure(bench: &mut Bench<'_, '_>) -> Result<()> {
    let cables = &Cables::lay()?;
    let batches = bench.settings.pick("20", "200", "500");
    bench.in_turn("call_ns", &[Way::Kernel, Way::Inline], |bench, way| {
        let hopscope: &Path = &bench.settings.hopscope;
        let program = match way {
            Way::Kernel => &bench.calls,
            _ => hopscope,
        };
        let mut command = client_in(&cables.server, program);
        if way != Way::Kernel {
            command.args(["stack", "run", "-q", "--if", "s1"]);
            command.arg(format!("--addr={STACK}/24")).arg("--");
            command.arg(&bench.calls);
        }
        let text = run_as("calls", command.arg(batches))?;
        let value = text.trim().parse();
        value
            .map(Turn::of)
            .map_err(|_| Error::no_field("calls", "a number", &text))
    })
}
