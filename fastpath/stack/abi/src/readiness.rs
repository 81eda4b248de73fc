//! poll(2)'s and epoll's bits, which are the same ones.
use hopscope_stack_engine::Readiness;
use nix::libc;

#[must_use]
pub fn bits(readiness: Readiness) -> u32 {
    let pairs = [
        (readiness.readable, libc::EPOLLIN | libc::EPOLLRDNORM),
        (readiness.writable, libc::EPOLLOUT | libc::EPOLLWRNORM),
        (readiness.read_hangup, libc::EPOLLRDHUP),
        (readiness.hangup, libc::EPOLLHUP),
        (readiness.error, libc::EPOLLERR),
    ];
    pairs
        .iter()
        .filter(|(is, _)| *is)
        .fold(0, |sum, (_, bit)| sum | *bit as u32)
}
