//! CPython's own tests of sockets, whose loopback is the stack's: each has the verdict that it has on the kernel's.
use hopscope_tests::Suite;

mod allowed;
mod compared;
mod lists;
mod verdicts;

pub(crate) fn register(suite: &mut Suite) {
    compared::register(suite);
}
