//! `hopscope splice echo`: every byte comes back, the end comes last, and nothing stays behind.
use anyhow::Result;
use hopscope_tests::{Requirement, Suite};

pub(crate) mod bounds;
mod bytes;
pub(crate) mod cases;
pub(crate) mod client;
mod lifecycle;
pub(crate) mod network;
pub(crate) mod server;

pub(crate) fn register(suite: &mut Suite) {
    bytes::register(suite);
    cases::register(suite);
    bounds::register(suite);
    lifecycle::register(suite);
}

/// What the kernel's echo needs.
pub(crate) const KERNEL: &[Requirement] = &[
    Requirement::Root,
    Requirement::Netns,
    Requirement::SliceHooks,
];
/// And of those whose client is compiled.
pub(crate) const OVERLAP: &[Requirement] = &[
    Requirement::Root,
    Requirement::Netns,
    Requirement::SliceHooks,
    Requirement::Gcc,
];

/// A number of a summary line.
pub(crate) fn number(summary: &serde_json::Value, path: &str) -> Result<u64> {
    let found = summary.pointer(path).and_then(serde_json::Value::as_u64);
    anyhow::Context::with_context(found, || format!("no number {path} in {summary}"))
}
