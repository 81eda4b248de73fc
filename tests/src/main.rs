//! `cargo test -p hopscope-tests [-- FILTER…]`: the list of all proofs, a module each.
#![forbid(unsafe_code)]

use hopscope_tests::{Suite, runner};
use std::process::ExitCode;

mod bad_input;
mod command_line;
mod demo;
mod house;

fn main() -> ExitCode {
    let mut suite = Suite::default();
    bad_input::register(&mut suite);
    command_line::register(&mut suite);
    demo::register(&mut suite);
    house::register(&mut suite);
    runner::main(suite)
}
