//! The clocks that probes use: stamps of packets and of function calls are compared with each
//! other.
pub use hopscope_event::clock::read::{clock_sync, measure_frequency, read_tsc as tsc_now};
