//! A function body as it lies: decoded whole, accepted or refused with the reason.
pub mod back_edges;
pub mod fused;
pub mod fuzz;
pub mod hazards;
pub mod inlined;
mod leaves;
pub mod liveness;
pub mod never;
pub mod own_load;
pub(super) mod push;
mod quiet_imports;
pub mod refusal;
pub mod sensitive;
pub mod unit;
pub mod unwinders;
pub mod unwinding;
pub mod verdict;

pub use refusal::{NoSlot, NoTables, Refusal};
