//! Variables that this program's own environment gets or loses, for itself started again or for what it becomes by exec.
//! The other entries stay as they are, byte for byte and in order. `std::process::Command` would sort them for a
//! child, and lose those that come twice or are no NAME=VALUE.
use std::ffi::OsStr;
use std::io;

/// # Errors
/// This process has other threads.
pub fn set(name: &str, value: impl AsRef<OsStr>) -> io::Result<()> {
    require_alone()?;
    // SAFETY: this is the only thread: nobody reads the environment meanwhile.
    unsafe { std::env::set_var(name, value) };
    Ok(())
}

/// All entries of that name.
///
/// # Errors
/// This process has other threads.
pub fn remove(name: &str) -> io::Result<()> {
    require_alone()?;
    // SAFETY: this is the only thread: nobody reads the environment meanwhile.
    unsafe { std::env::remove_var(name) };
    Ok(())
}

fn require_alone() -> io::Result<()> {
    // By /proc/self: /proc may be that of another PID namespace.
    match std::fs::read_dir("/proc/self/task")?.count() {
        1 => Ok(()),
        n => Err(io::Error::other(format!("{n} threads share it"))),
    }
}
