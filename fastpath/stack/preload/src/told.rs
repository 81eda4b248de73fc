//! What goes with the bytes of a call.

/// What a call receives beside the bytes.
#[derive(Debug, Default)]
pub struct Told {
    /// The sender's sockaddr; none of a stream.
    pub from: Vec<u8>,
    /// MSG_TRUNC, MSG_CTRUNC.
    pub flags: i32,
    /// Control messages: no more than there is room for.
    pub control: Vec<u8>,
    pub control_room: usize,
}

/// What a call sends beside the bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct To<'a> {
    /// A sockaddr.
    pub address: Option<&'a [u8]>,
    /// Control messages.
    pub control: &'a [u8],
}
