//! Pure analysis: records in, calls and statistics out. No I/O.
#![forbid(unsafe_code)]
