//! The measured program: generated, built with the system's C compiler, and driven by lines on
//! its standard input.
mod build;
mod generate;
mod target;

pub use build::{Compiler, Program, Variant, build};
pub(crate) use build::{run, run_as};
pub use generate::{FLOORS, Family, Place, ProgramPlan};
pub(crate) use hopscope_compare::error::last_words;
pub use target::{Paced, Phase, Target};
