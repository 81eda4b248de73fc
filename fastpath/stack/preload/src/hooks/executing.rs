//! A program in this one's place: it is on the stack, too, where this one leaves its environment out (nginx does when it executes itself).
use super::{lock, real};
use crate::kernel;
use hopscope_stack_instance::handed::ENVIRONMENT;
use nix::libc::{self, c_char, c_int};
use std::ffi::{CStr, CString};
use std::sync::OnceLock;

const PRELOAD: &str = "LD_PRELOAD";

/// Both entries, as this program was started with them.
static OWN: OnceLock<[CString; 2]> = OnceLock::new();

/// While the environment is still as it was.
pub fn remember() {
    let entry = |name: &str| {
        let value = std::env::var(name).ok()?;
        CString::new(format!("{name}={value}")).ok()
    };
    if let (Some(preload), Some(environment)) = (entry(PRELOAD), entry(ENVIRONMENT)) {
        let _ = OWN.set([preload, environment]);
    }
}

fn is_of(entry: &CStr, name: &str) -> bool {
    let value = entry.to_bytes().strip_prefix(name.as_bytes());
    value.is_some_and(|value| value.first() == Some(&b'='))
}

/// The environment with ours, in memory of its own; `None`: it has one of them, or there is no memory. Nothing is allocated: the
/// thread may be that of a child whose parent held the allocator's lock.
///
/// # Safety
/// `environment` is an array of strings that ends with null.
unsafe fn completed(environment: *const *const c_char) -> Option<*const *const c_char> {
    let own = OWN.get()?;
    let mut count = 0;
    loop {
        // SAFETY: within the array, by the caller's promise.
        let entry = unsafe { *environment.add(count) };
        if entry.is_null() {
            break;
        }
        // SAFETY: a string, by the caller's promise.
        let entry = unsafe { CStr::from_ptr(entry) };
        if is_of(entry, PRELOAD) || is_of(entry, ENVIRONMENT) {
            return None;
        }
        count += 1;
    }
    let len = (count + own.len() + 1) * size_of::<*const c_char>();
    let access = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let how = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
    // SAFETY: a new mapping, at an address that the kernel chooses. It goes with the program.
    let at = unsafe { kernel::call(libc::SYS_mmap, [0, len, access, how, usize::MAX, 0]) }.ok()?;
    let all = at as *mut *const c_char;
    // SAFETY: the mapping has room for all of them and the null at the end, which it begins as.
    unsafe {
        all.copy_from_nonoverlapping(environment, count);
        for (n, entry) in own.iter().enumerate() {
            all.add(count + n).write(entry.as_ptr());
        }
    }
    Some(all)
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn execve(
    path: *const c_char,
    arguments: *const *const c_char,
    environment: *const *const c_char,
) -> c_int {
    let mut own = None;
    if lock::is_filled() && !environment.is_null() {
        // SAFETY: as libc's.
        own = unsafe { completed(environment) };
    }
    // SAFETY: as libc's.
    unsafe { real::execve(path, arguments, own.unwrap_or(environment)) }
}
