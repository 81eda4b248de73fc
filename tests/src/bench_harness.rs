//! `hopscope bench` as a user runs it: what order, what verdict, what is printed and kept.
mod compare;
mod density;
mod load;

use hopscope_tests::Suite;

pub(crate) fn register(suite: &mut Suite) {
    compare::register(suite);
    density::register(suite);
    load::register(suite);
}
