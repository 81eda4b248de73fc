//! The measured program: generated, built with the system's C compiler, and driven by lines on
//! its standard input.
mod build;
mod generate;
mod target;

pub use build::{Compiler, Program, Variant, build};
pub(crate) use build::{last_words, run, run_as};
pub use generate::{FLOORS, Family, Place, Plan};
pub use target::{Paced, Phase, Target};
