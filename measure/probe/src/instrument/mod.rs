//! From a function's bytes to the copy that has probes, in the order of the imports: what is to be captured, the body
//! decoded and judged, captures resolved in it, machine code emitted. Nothing here touches a process.
pub mod asm;
pub mod capture;

pub mod body;
pub mod resolve;

pub mod emit;
