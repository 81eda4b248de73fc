//! `hopscope stack run`: unmodified programs, the kernel's stack at the other end of a cable.
use hopscope_tests::Suite;

mod acceptance;
mod any_port;
mod around;
mod bypass;
mod claims;
mod cpython;
mod datagram_tools;
mod datagrams;
mod device;
mod differential;
mod disconnects;
mod kept;
mod mtu;
mod own_address;
mod pieces;
mod pipeline;
mod policy;
mod privileged;
mod processes;
mod refused;
mod resets;
mod reused;
mod running;
mod signals;
mod streams;
mod tools;
mod unlistens;

pub(crate) fn register(suite: &mut Suite) {
    any_port::register(suite);
    around::register(suite);
    bypass::register(suite);
    claims::register(suite);
    cpython::register(suite);
    acceptance::register(suite);
    datagrams::register(suite);
    device::register(suite);
    differential::register(suite);
    disconnects::register(suite);
    kept::register(suite);
    mtu::register(suite);
    own_address::register(suite);
    pipeline::register(suite);
    policy::register(suite);
    pieces::register(suite);
    privileged::register(suite);
    processes::register(suite);
    refused::register(suite);
    resets::register(suite);
    reused::register(suite);
    signals::register(suite);
    streams::register(suite);
    unlistens::register(suite);
    acceptance::jemalloc::register_again(suite);
    pipeline::engines::register_again(suite);
}
