//! What the kernel has of a direction, and what user space reads and tells of it.
use super::ProxyError;

/// A direction that the kernel moves, as user space knows it.
#[derive(Debug)]
pub(in crate::proxy) struct Share {
    /// Of the socket where its bytes arrive.
    pub(in crate::proxy) cookie: u64,
    /// Bytes that user space read and sent.
    pub(in crate::proxy) received: u64,
    pub(in crate::proxy) sent: u64,
    /// What the kernel was told of them.
    pub(in crate::proxy) said: u64,
    /// User space is to copy for now.
    pub(in crate::proxy) is_user: bool,
    /// At how many take-overs what the kernel had redirected before was found to be with TCP.
    pub(in crate::proxy) cleared: u32,
}

/// The kernel's side, as a direction reads it.
pub(in crate::proxy) trait Kernel {
    /// All that the kernel redirected is with TCP: it comes before what is sent now.
    fn is_drained(&self, share: &Share) -> Result<bool, ProxyError>;
    /// All that was left to user space has been read, so that the end is the end.
    fn is_all_read(&self, share: &Share) -> Result<bool, ProxyError>;
    /// How often user space has taken over this direction.
    fn takeovers(&self, share: &Share) -> Result<u32, ProxyError>;
    /// Says how far user space is with what was left to it.
    fn say_progress(&self, share: &Share) -> Result<(), ProxyError>;
}
