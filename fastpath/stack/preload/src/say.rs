//! What the library says: one line, to the program's standard error.
use crate::kernel;
use std::sync::atomic::{AtomicBool, Ordering};

pub static TRACE: AtomicBool = AtomicBool::new(false);

pub fn say(text: &str) {
    // A program without standard error hears nothing.
    let _ = kernel::write(2, format!("hopscope: {text}\n").as_bytes());
}

/// With `--trace` alone.
pub fn trace(text: impl FnOnce() -> String) {
    if TRACE.load(Ordering::Relaxed) {
        say(&text());
    }
}

/// Once in a process.
pub fn once(said: &AtomicBool, text: impl FnOnce() -> String) {
    if !said.swap(true, Ordering::Relaxed) {
        say(&text());
    }
}
