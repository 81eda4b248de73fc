//! Kinds of hooks.
use std::fmt;
use std::str::FromStr;

/// How a hook is reached, from the richest to the poorest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Backend {
    /// Function entries and exits, by rewriting the kernel's text; tracepoints where there is none.
    Fentry,
    /// Tracepoints with types, and the socket filters of control groups.
    Tracepoint,
    /// Tracepoints whose arguments have no types.
    Raw,
}

impl Backend {
    pub const fn name(self) -> &'static str {
        match self {
            Backend::Fentry => "fentry",
            Backend::Tracepoint => "tracepoint",
            Backend::Raw => "raw",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Backend {
    type Err = String;
    fn from_str(name: &str) -> Result<Backend, String> {
        [Backend::Fentry, Backend::Tracepoint, Backend::Raw]
            .into_iter()
            .find(|backend| backend.name() == name)
            .ok_or_else(|| format!("no backend is called `{name}`: fentry, tracepoint, raw"))
    }
}
