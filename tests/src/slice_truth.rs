//! Every record of the kernel's path against what the programs at both ends know of their own calls:
//! a record that is wrong is a failure, one that is missing has a counter.
use hopscope_tests::Requirement::{Gcc, Netns, Root, SliceHooks};
use hopscope_tests::Suite;

mod account;
mod cable;
mod calls;
mod cases;
mod check;
mod network;
mod run;
mod traffic;

const NEEDS: &[hopscope_tests::Requirement] = &[Root, Gcc, Netns, SliceHooks];

pub(crate) fn register(suite: &mut Suite) {
    for (name, traffic, set_up) in cases::all() {
        let name = format!("slice_truth::{name}");
        suite.case(name.clone(), NEEDS, move || {
            run::checked(&name, &traffic, set_up)
        });
    }
}
