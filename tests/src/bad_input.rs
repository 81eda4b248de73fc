//! Everything a user can get wrong, and everything a machine can refuse: one clear line, exit
//! code 2, and the process that was aimed at goes on as if nothing had been.
use hopscope_tests::Suite;

mod files;
mod names;
mod outputs;
mod recordings;
mod steady;
mod targets;

pub(crate) fn register(suite: &mut Suite) {
    targets::register(suite);
    files::register(suite);
    outputs::register(suite);
    recordings::register(suite);
    names::register(suite);
}
