//! Real programs with every function of theirs measured: what they put out is the same, and every
//! entry has its end.
use hopscope_tests::Suite;

mod dpdk;
mod haproxy;
mod http;
mod measured;
pub(crate) mod nginx;
mod openssl;
mod ovs;
mod python;

pub(crate) fn register(suite: &mut Suite) {
    dpdk::register(suite);
    haproxy::register(suite);
    nginx::register(suite);
    openssl::register(suite);
    ovs::register(suite);
    python::register(suite);
}
