//! `hopscope stack run --mode pipeline`: programs of any number of processes, the stack in a `stack serve`.
use hopscope_tests::Suite;

mod datagram_ends;
mod datagrams;
mod devices;
mod ends;
pub(super) mod engines;
mod faults;
mod full;
mod handed_on;
pub(super) mod instance;
mod killed;
mod load;
mod ports;
mod refused;
mod reloads;
mod reloads_nginx;
mod returning;
mod served;
mod upgrades;
mod used_up;
mod waits;

pub(crate) fn register(suite: &mut Suite) {
    datagram_ends::register(suite);
    datagrams::register(suite);
    devices::register(suite);
    ends::register(suite);
    engines::register(suite);
    faults::register(suite);
    full::register(suite);
    handed_on::register(suite);
    killed::register(suite);
    ports::register(suite);
    refused::register(suite);
    reloads::register(suite);
    reloads_nginx::register(suite);
    returning::register(suite);
    served::register(suite);
    upgrades::register(suite);
    used_up::register(suite);
    waits::register(suite);
}
