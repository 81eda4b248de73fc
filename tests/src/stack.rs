//! `hopscope stack` from outside: other people's programs over the kernel's TCP at its far end, every byte compared.
use hopscope_tests::Suite;

mod bulk;
mod cable;
mod capture;
mod clients;
mod counted;
mod datagrams;
mod http;
mod kernel_calls;
mod link;
mod mtu;
mod netstack;
mod observed;
mod privileges;
mod programs;
mod refused;
mod run;
mod servers;
mod serving;

pub(crate) fn register(suite: &mut Suite) {
    servers::register(suite);
    clients::register(suite);
    counted::register(suite);
    bulk::register(suite);
    capture::register(suite);
    datagrams::register(suite);
    http::register(suite);
    kernel_calls::register(suite);
    link::register(suite);
    mtu::register(suite);
    netstack::register(suite);
    observed::register(suite);
    privileges::register(suite);
    programs::register(suite);
    refused::register(suite);
    run::register(suite);
}
