//! Two commands in turn, with a verdict: what `hopscope bench compare` runs, and what every bench of `hopscope-bench`
//! measures, judges and prints with.
#![forbid(unsafe_code)]

pub mod commands;
pub mod comparison;
pub mod error;
pub mod host;
pub mod interleave;
pub mod median;
pub mod output;
pub mod stats;
