//! `cargo test -p hopscope-tests [-- FILTER…]`: the list of all tests, a module each.
#![forbid(unsafe_code)]

use hopscope_tests::{Suite, runner};
use std::process::ExitCode;

mod awkward;
mod bad_input;
mod bench_harness;
mod breakpoints;
mod browser;
mod budget;
mod by_name;
mod called;
mod captured;
mod clobber;
mod command_line;
mod cost;
mod counted;
mod debuggers;
mod demo;
mod detached;
mod diff;
mod distress;
mod dlopen;
mod early_end;
mod execution;
mod export;
mod flight;
mod forks;
mod frozen;
mod fused;
mod got;
mod guards;
mod hostile;
mod house;
mod inlined;
mod launched;
mod listed;
mod load_connections;
mod load_packets;
mod made;
mod moves;
mod netio;
mod nf;
mod off_cpu;
mod one_timeline;
mod pauses;
mod pointers;
mod recording;
mod slice;
mod slice_files;
mod slice_truth;
mod splice;
mod splice_echo;
mod splice_proxy;
mod stack;
mod told;
mod top;
mod torture;
mod traps;
mod unwinding;
mod unwound;
mod vm;
mod vnet;

fn main() -> ExitCode {
    let mut suite = Suite::default();
    awkward::register(&mut suite);
    bad_input::register(&mut suite);
    bench_harness::register(&mut suite);
    breakpoints::register(&mut suite);
    browser::register(&mut suite);
    budget::register(&mut suite);
    by_name::register(&mut suite);
    captured::register(&mut suite);
    clobber::register(&mut suite);
    command_line::register(&mut suite);
    cost::register(&mut suite);
    counted::register(&mut suite);
    debuggers::register(&mut suite);
    demo::register(&mut suite);
    detached::register(&mut suite);
    diff::register(&mut suite);
    distress::register(&mut suite);
    early_end::register(&mut suite);
    execution::register(&mut suite);
    export::register(&mut suite);
    flight::register(&mut suite);
    forks::register(&mut suite);
    frozen::register(&mut suite);
    got::register(&mut suite);
    guards::register(&mut suite);
    hostile::register(&mut suite);
    fused::register(&mut suite);
    inlined::register(&mut suite);
    house::register(&mut suite);
    launched::register(&mut suite);
    listed::register(&mut suite);
    load_connections::register(&mut suite);
    load_packets::register(&mut suite);
    dlopen::register(&mut suite);
    moves::register(&mut suite);
    netio::register(&mut suite);
    nf::register(&mut suite);
    off_cpu::register(&mut suite);
    one_timeline::register(&mut suite);
    pauses::register(&mut suite);
    pointers::register(&mut suite);
    slice::register(&mut suite);
    slice_files::register(&mut suite);
    slice_truth::register(&mut suite);
    splice::register(&mut suite);
    splice_echo::register(&mut suite);
    splice_proxy::register(&mut suite);
    stack::register(&mut suite);
    top::register(&mut suite);
    torture::register(&mut suite);
    traps::register(&mut suite);
    unwinding::register(&mut suite);
    unwound::register(&mut suite);
    vm::register(&mut suite);
    vnet::register(&mut suite);
    runner::main(suite)
}

/// A flag that changes with the headers of a directory of programs, so that a program is built
/// anew when only those change.
fn headers(directory: &str) -> anyhow::Result<String> {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(hopscope_tests::programs().join(directory))? {
        paths.push(entry?.path());
    }
    paths.sort();
    for path in paths
        .iter()
        .filter(|p| p.extension().is_some_and(|e| e == "h"))
    {
        std::fs::read(path)?.hash(&mut hasher);
    }
    Ok(format!("-DHEADERS={:#x}", hasher.finish()))
}
