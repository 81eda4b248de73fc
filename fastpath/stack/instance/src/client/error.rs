//! Why a connection of a client failed.
use hopscope_stack_engine::SocketError;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    #[error(transparent)]
    Socket(#[from] SocketError),
    #[error("the peer closed the connection after {received} bytes of {expected}")]
    Ended { received: u64, expected: u64 },
    #[error("the peer closed the connection before the response was there")]
    EndedEarly,
}
