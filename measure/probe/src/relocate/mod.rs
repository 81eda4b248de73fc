//! Moving a whole function body, with probes, away from where it lies.
pub mod copy;
pub mod liveness;
pub mod never;
pub mod own_load;
mod push;
pub mod refusal;
pub mod unit;
pub mod verdict;

pub use refusal::Refusal;
