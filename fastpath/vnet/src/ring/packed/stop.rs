//! A device that is killed before any of its stores: the tests' own.
use crate::ring::RingError;
use std::cell::Cell;

thread_local! {
    static LEFT: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Stores of this thread until the one that does not happen; `None`: all do.
pub(in crate::ring) fn after(stores: Option<u32>) {
    LEFT.set(stores);
}

pub(super) fn count() -> Result<(), RingError> {
    match LEFT.get() {
        Some(0) => Err(RingError::Empty),
        Some(left) => {
            LEFT.set(Some(left - 1));
            Ok(())
        }
        None => Ok(()),
    }
}
