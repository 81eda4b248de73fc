//! Programs of Debian as they are, in both modes, as servers and as clients, the kernel's stack at the other end: every byte is compared.
use hopscope_tests::Suite;

mod certificate;
mod haproxy;
mod iperf;
mod jemalloc;
mod memcached;
mod openssl;
mod python_web;
pub(super) mod side;
mod web;
mod web_clients;

pub(crate) fn register(suite: &mut Suite) {
    haproxy::register(suite);
    iperf::register(suite);
    jemalloc::register(suite);
    memcached::register(suite);
    openssl::register(suite);
    python_web::register(suite);
    web::register(suite);
    web_clients::register(suite);
}
