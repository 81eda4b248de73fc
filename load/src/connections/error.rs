//! What keeps a load from being run at all. What fails while it runs is counted instead.
use nix::errno::Errno;
use std::net::{IpAddr, SocketAddr};

#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("cannot connect to {target}: {}{}", .errno.desc(), connect_hint(*.errno))]
    Connect { target: SocketAddr, errno: Errno },
    #[error("cannot connect to {target}: no answer in {seconds} s; see --timeout")]
    ConnectTimeout { target: SocketAddr, seconds: f64 },
    #[error("cannot listen on {listen}: {}{}", .errno.desc(), listen_hint(*.errno))]
    Listen { listen: SocketAddr, errno: Errno },
    #[error("source address {source_ip} cannot be used: {}; it must be one of this machine's", .errno.desc())]
    Source { source_ip: IpAddr, errno: Errno },
    #[error("source address {source_ip} and target {target} are not of one address family")]
    Family {
        source_ip: IpAddr,
        target: SocketAddr,
    },
    #[error(
        "{wanted} file descriptors are needed and at most {hard} are allowed; raise the hard limit \
         (ulimit -Hn, LimitNOFILE=) or ask for fewer connections"
    )]
    Descriptors { wanted: u64, hard: u64 },
    #[error(
        "{wanted} connections at a time need more ports than there are: {ports} for each of \
         {sources} source addresses; add --source, or widen net.ipv4.ip_local_port_range"
    )]
    Ports {
        wanted: usize,
        ports: usize,
        sources: usize,
    },
    #[error("a rate of {rate_hz} requests a second cannot be paced: above 0 and at most 1e9")]
    Rate { rate_hz: f64 },
    #[error(
        "no socket for ICMP: {}; neither a ping socket (net.ipv4.ping_group_range) nor a raw one \
         (CAP_NET_RAW) is allowed", .errno.desc()
    )]
    Ping { errno: Errno },
    #[error("{what}: {}", .errno.desc())]
    System { what: &'static str, errno: Errno },
    #[error("cannot start a thread: {0}")]
    Thread(#[source] std::io::Error),
}

impl LoadError {
    pub(crate) fn system(what: &'static str) -> impl Fn(Errno) -> LoadError {
        move |errno| LoadError::System { what, errno }
    }
}

fn connect_hint(errno: Errno) -> &'static str {
    match errno {
        Errno::ECONNREFUSED => "; no server listens there (hopscope load tcp serve --listen ADDR)",
        Errno::EADDRNOTAVAIL => "; no free local port: add --source, or --close reset",
        _ => "",
    }
}

fn listen_hint(errno: Errno) -> &'static str {
    match errno {
        Errno::EADDRINUSE => "; another program has this port",
        Errno::EACCES => {
            "; ports below net.ipv4.ip_unprivileged_port_start need CAP_NET_BIND_SERVICE"
        }
        Errno::EADDRNOTAVAIL => "; not an address of this machine",
        _ => "",
    }
}
