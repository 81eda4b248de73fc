//! Why a back end cannot start or continue. A protocol error of a front end ends its connection only: `Broken`.
use crate::common::eventfd::EventfdError;
use crate::policy::BadPolicy;
use crate::vhost::Refused;
use hopscope_netio::PortError;
use hopscope_serving::ServingError;
use std::io;

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Serving(#[from] ServingError),
    #[error(transparent)]
    Port(#[from] PortError),
    #[error(transparent)]
    Policy(#[from] BadPolicy),
    #[error("{doing}: {source}")]
    System {
        doing: &'static str,
        source: io::Error,
    },
}

impl ServeError {
    pub(super) fn system<E: Into<io::Error>>(doing: &'static str) -> impl FnOnce(E) -> ServeError {
        move |source| ServeError::System {
            doing,
            source: source.into(),
        }
    }
}

/// Why a connection ended before its front end ended it.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error("memory region {n} ({len:#x} bytes at {offset:#x} of its file): {why}")]
    Map {
        n: usize,
        len: u64,
        offset: u64,
        why: String,
    },
    #[error(transparent)]
    Eventfd(#[from] EventfdError),
    #[error("the front end does not read replies")]
    NotReading,
    #[error("truncated message: {0} bytes")]
    Short(usize),
    #[error("{0}")]
    Socket(#[from] io::Error),
}
