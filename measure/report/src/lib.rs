//! What a user reads: each report writes an analysis to an `impl Write`.
#![forbid(unsafe_code)]
