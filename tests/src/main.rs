//! `cargo test -p hopscope-tests [-- FILTER…]`: the list of all proofs, a module each.
#![forbid(unsafe_code)]

use hopscope_tests::{Suite, runner};
use std::process::ExitCode;

mod house;

fn main() -> ExitCode {
    let mut suite = Suite::default();
    house::register(&mut suite);
    runner::main(suite)
}
