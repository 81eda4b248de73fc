//! Programs of Debian as they are, in both modes, as servers and as clients, the kernel's stack at the other end: every byte is compared.
use hopscope_tests::Suite;

mod certificate;
mod haproxy;
mod iperf;
pub(super) mod jemalloc;
mod memcached;
mod nginx;
mod openssl;
mod postgres;
mod python;
mod python_web;
mod redis;
pub(super) mod side;
mod ssh;
mod web;
mod web_clients;
mod web_proxy;

pub(crate) fn register(suite: &mut Suite) {
    haproxy::register(suite);
    iperf::register(suite);
    memcached::register(suite);
    nginx::register(suite);
    openssl::register(suite);
    postgres::register(suite);
    python::register(suite);
    python_web::register(suite);
    redis::register(suite);
    ssh::register(suite);
    web::register(suite);
    web_clients::register(suite);
    web_proxy::register(suite);
}
