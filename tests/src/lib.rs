//! What every test uses: cases with requirements, the runner, compiled target programs, target
//! processes that never outlive their case, and the counts to run at.
//!
//! To add tests: write `tests/src/NAME.rs` with `pub(crate) fn register(suite: &mut Suite)`, and list it
//! in `tests/src/main.rs`.
#![forbid(unsafe_code)]

pub mod command;
pub mod compile;
pub mod counts;
pub mod mapped;
pub mod paths;
pub mod requirement;
pub mod runner;
pub mod suite;
pub mod target;

pub use command::{Output, hopscope};
pub use compile::{compile, compile_c};
pub use counts::{Counts, counts};
pub use paths::{cgroup2, hopscope_bin, programs, repository, scratch, target_dir};
pub use requirement::Requirement;
pub use suite::{Case, Suite};
pub use target::Target;
