//! Who calls whom within a file.

/// The calls of a file, in the order of [`super::Image::functions`].
#[derive(Debug, Default)]
pub struct CallGraph {
    pub nodes: Vec<Node>,
    /// Names that [`To::Import`] numbers.
    pub imports: Vec<String>,
}

/// What one function does to others.
#[derive(Debug, Clone, Default)]
pub struct Node {
    /// Each once.
    pub edges: Vec<Edge>,
    /// It calls through a pointer, or a place that belongs to no known function.
    pub calls_unknown: bool,
    /// It ends in a jump of that kind: its caller's frame is then below, its own is gone.
    pub jumps_unknown: bool,
    /// It contains a system call instruction.
    pub system_call: bool,
    /// An instruction or a relocation takes its address: it can be called through a pointer.
    pub address_taken: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Edge {
    pub to: To,
    /// A jump: the jumping function's own frame is gone then.
    pub tail: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum To {
    Function(u32),
    Import(u32),
}
