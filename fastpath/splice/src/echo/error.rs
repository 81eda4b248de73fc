//! What can go wrong before connections are served, and what ends a server.
use hopscope_bpf::BpfError;
use std::net::SocketAddr;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum EchoError {
    #[error("cannot listen on {listen}: {why}")]
    Listen { listen: SocketAddr, why: String },
    #[error("{doing}: {why}")]
    System { doing: &'static str, why: String },
    #[error("{0}; `hopscope check` says what is missing, and --mode user needs none of it")]
    Bpf(#[from] BpfError),
    #[error(
        "{cgroup}: cannot watch its sockets: {why}; --cgroup names another cgroup2 directory, and \
         --mode user needs none"
    )]
    Cgroup { cgroup: String, why: String },
    #[error("io_uring is not available ({why}); --mode user needs none")]
    Uring { why: String },
}

impl EchoError {
    pub(crate) fn system<E: std::fmt::Display>(doing: &'static str) -> impl Fn(E) -> EchoError {
        move |error| EchoError::System {
            doing,
            why: error.to_string(),
        }
    }

    pub(crate) fn bpf(what: &'static str) -> impl Fn(libbpf_rs::Error) -> EchoError {
        move |error| BpfError::with_cause(what)(error).into()
    }
}
