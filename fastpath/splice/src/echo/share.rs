//! What the kernel has of a connection, and what user space reads of the kernel's side.
use super::EchoError;

/// A connection that the kernel echoes, as user space knows it.
#[derive(Debug)]
pub(in crate::echo) struct Share {
    pub(in crate::echo) cookie: u64,
    /// Bytes that user space read and sent.
    pub(in crate::echo) received: u64,
    pub(in crate::echo) sent: u64,
    /// User space is to echo from now on.
    pub(in crate::echo) is_user: bool,
    /// And all that the kernel turned round before comes first.
    pub(in crate::echo) is_clear: bool,
}

/// The kernel's side, as a connection reads it.
pub(in crate::echo) trait Drained {
    /// Everything that the kernel turned round comes before what is sent now.
    fn is_drained(&self, share: &Share) -> Result<bool, EchoError>;
    /// Everything that was left to user space has been read, so that the end is the end.
    fn is_all_read(&self, share: &Share) -> Result<bool, EchoError>;
}
