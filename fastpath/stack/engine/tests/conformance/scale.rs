//! Many connections: what they cost, and that nothing of them is left. `HOPSCOPE_COUNTS=full`: 100,000 open ones, 10⁶ short.
mod open;
mod short;
