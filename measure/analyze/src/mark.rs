//! What a sink remembers of a call until it ends.

/// What a sink attaches to an open call: its own number, and what is kept for the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mark {
    pub node: u32,
    /// The function is already open further out on the same stack.
    pub recursive: bool,
    /// A function of the same module is.
    pub within_module: bool,
    /// A call that the sink counts under the same number is.
    pub within_own_node: bool,
}
