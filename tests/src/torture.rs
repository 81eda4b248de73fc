//! Attaching, detaching and being killed, against targets of every kind: whatever happens, the
//! target ends with all its sums right.
mod cycles;
mod everything;
mod first_bytes;
pub(crate) mod kills;
mod leftovers;
mod torturer;

use hopscope_tests::Suite;

pub(crate) fn register(suite: &mut Suite) {
    cycles::register(suite);
    everything::register(suite);
    first_bytes::register(suite);
    kills::register(suite);
    leftovers::register(suite);
}
