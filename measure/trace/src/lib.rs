//! The `.hop` trace file: checksummed chunks, readable up to the last whole one after any crash.
#![deny(unsafe_code)]
