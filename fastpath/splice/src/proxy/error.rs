//! What can go wrong before connections are taken, and what ends a proxy.
use crate::echo::EchoError;
use hopscope_bpf::BpfError;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum ProxyError {
    /// Of the socket that listens, and limits.
    #[error(transparent)]
    Socket(#[from] EchoError),
    #[error("the kernel engine is not available: {0}; --engine user needs none of it")]
    Kernel(#[from] BpfError),
    #[error("{doing}: {why}")]
    System { doing: &'static str, why: String },
}

impl ProxyError {
    pub(super) fn system<E: std::fmt::Display>(doing: &'static str) -> impl Fn(E) -> ProxyError {
        move |error| ProxyError::System {
            doing,
            why: error.to_string(),
        }
    }

    pub(super) fn bpf(what: &'static str) -> impl Fn(libbpf_rs::Error) -> ProxyError {
        move |error| BpfError::with_cause(what)(error).into()
    }
}
