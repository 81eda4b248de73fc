//! Ports that not every process may bind: below net.ipv4.ip_unprivileged_port_start only who has CAP_NET_BIND_SERVICE (capabilities(7),
//! `__inet_bind` in net/ipv4/af_inet.c).
use crate::kernel;

const CAP_NET_BIND_SERVICE: u32 = 10;
/// What the kernel begins with.
const PROT_SOCK: u16 = 1024;

pub fn may_bind(port: u16) -> bool {
    // Port 0 is one that is chosen.
    port == 0 || kernel::has_capability(CAP_NET_BIND_SERVICE) || port >= first_of_all()
}

/// Without /proc the kernel's own.
fn first_of_all() -> u16 {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start");
    let first = text.ok().and_then(|text| text.trim().parse().ok());
    first.unwrap_or(PROT_SOCK)
}
