//! Moving a whole function body, with probes, away from where it lies.
pub mod copy;
pub mod hazards;
pub mod liveness;
pub mod never;
pub mod own_load;
mod push;
mod quiet_imports;
pub mod refusal;
pub mod sensitive;
pub mod unit;
pub mod unwinding;
pub mod verdict;

pub use refusal::Refusal;
