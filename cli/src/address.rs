//! Addresses of the command line: where to connect to, and where to listen.
use anyhow::Context;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::path::Path;

/// The first address of HOST:PORT.
pub(crate) fn resolve(text: &str) -> anyhow::Result<SocketAddr> {
    let found = text.to_socket_addrs();
    let mut found = found.with_context(|| format!("{text:?} is not HOST:PORT"))?;
    found
        .next()
        .with_context(|| format!("{text:?} has no address"))
}

/// The same, and `:PORT`, which is every address of this machine.
pub(crate) fn to_listen_on(text: &str) -> anyhow::Result<SocketAddr> {
    let port = text.strip_prefix(':').and_then(|port| port.parse().ok());
    port.map_or_else(|| resolve(text), |port| Ok(SocketAddr::new(any(), port)))
}

/// Of IPv6 it takes IPv4's connections too (Linux: net.ipv6.bindv6only = 0).
fn any() -> IpAddr {
    if Path::new("/proc/net/if_inet6").exists() {
        Ipv6Addr::UNSPECIFIED.into()
    } else {
        Ipv4Addr::UNSPECIFIED.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_every_address() {
        let address = to_listen_on(":6380").unwrap();
        assert!(address.ip().is_unspecified() && address.port() == 6380);
        assert_eq!(
            to_listen_on("127.0.0.1:0").unwrap(),
            "127.0.0.1:0".parse().unwrap()
        );
        for wrong in [":", ":70000", ":x", "6380", ""] {
            assert!(to_listen_on(wrong).is_err(), "{wrong}");
        }
        assert!(resolve(":6380").is_err());
    }
}
