//! A program in this one's place: it is on the stack, too, where this one leaves its environment out (nginx does when it executes itself).
use super::memory::is_nowhere;
use super::real::{self, Strings};
use super::{lock, processes};
use crate::kernel;
use crate::say::say;
use hopscope_stack_instance::handed::ENVIRONMENT;
use hopscope_stack_instance::unseen::{self, Unseen};
use nix::libc::{self, c_char, c_int};
use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::OnceLock;

unsafe extern "C" {
    static environ: Strings;
}

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

/// Of ours in LD_PRELOAD the library itself: what `stack run` put first.
fn library(own: &[CString; 2]) -> &[u8] {
    let all = value(&own[0], PRELOAD).unwrap_or_default();
    all.split(|byte| *byte == b':').next().unwrap_or_default()
}

/// An entry of the environment under that name.
fn value<'a>(entry: &'a CStr, name: &str) -> Option<&'a [u8]> {
    let value = entry.to_bytes().strip_prefix(name.as_bytes())?;
    value.strip_prefix(b"=")
}

/// Memory for an environment, until the call that takes it has returned. Nothing of the allocator's: the thread may be that of a child
/// whose parent held its lock.
struct Mapped {
    at: *mut u8,
    len: usize,
}

impl Mapped {
    fn new(len: usize) -> Option<Mapped> {
        let access = (libc::PROT_READ | libc::PROT_WRITE) as usize;
        let how = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as usize;
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let at = unsafe { kernel::call(libc::SYS_mmap, [0, len, access, how, usize::MAX, 0]) };
        let at = at.ok()? as *mut u8;
        Some(Mapped { at, len })
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's.
        let _ = unsafe { kernel::call(libc::SYS_munmap, [self.at as usize, self.len, 0, 0, 0, 0]) };
    }
}

/// The environment with ours, in memory of its own; `None`: it has them, or there is no memory.
///
/// # Safety
/// `environment` is an array of strings that ends with null.
unsafe fn completed(environment: Strings) -> Option<Mapped> {
    let own = OWN.get()?;
    let library = library(own);
    let (mut count, mut preload, mut configured) = (0, None, false);
    loop {
        // SAFETY: within the array, by the caller's promise.
        let entry = unsafe { *environment.add(count) };
        if entry.is_null() {
            break;
        }
        // SAFETY: a string, by the caller's promise.
        let entry = unsafe { CStr::from_ptr(entry) };
        if let Some(others) = value(entry, PRELOAD) {
            preload = Some((count, others));
        }
        configured |= value(entry, ENVIRONMENT).is_some();
        count += 1;
    }
    let is_loaded = |others: &[u8]| {
        let mut all = others.split(|byte| b": ".contains(byte));
        all.any(|one| one == library)
    };
    if configured && preload.is_some_and(|(_, others)| is_loaded(others)) {
        return None;
    }
    let array = (count + own.len() + 1) * size_of::<*const c_char>();
    // With the name, `=`, `:` and the end.
    let text = preload.map_or(0, |(_, others)| library.len() + others.len()) + PRELOAD.len() + 3;
    let mapped = Mapped::new(array + text)?;
    let at = mapped.at;
    let all = at.cast::<*const c_char>();
    // SAFETY: the mapping has room for all of them, the null at the end, which it begins as, and the text behind.
    unsafe {
        all.copy_from_nonoverlapping(environment, count);
        if !configured {
            all.add(count).write(own[1].as_ptr());
            count += 1;
        }
        match preload {
            None => all.add(count).write(own[0].as_ptr()),
            Some((_, others)) if is_loaded(others) => {}
            Some((place, others)) => {
                let mut to = at.add(array);
                all.add(place).write(to.cast());
                for part in [PRELOAD.as_bytes(), b"=", library, b":", others] {
                    to.copy_from_nonoverlapping(part.as_ptr(), part.len());
                    to = to.add(part.len());
                }
            }
        }
    }
    Some(mapped)
}

/// Before another program is in this one's place, or in a child's. Not in a child that has its parent's memory (CLONE_VM), or that
/// libc did not fork: locks may be another's there.
fn is_to_look() -> bool {
    lock::is_filled() && processes::is_own_process() && !lock::is_mine()
}

/// What waits for more leaves, and what the next program cannot go on with is said.
fn before_exec(path: impl FnOnce() -> Option<PathBuf>) {
    if is_to_look() {
        say_whether_seen(path());
        let _ = lock::with(|state| state.before_exec());
    }
}

/// A program whose calls are not seen has the kernel's stack; of what cannot be executed the call itself tells.
fn say_whether_seen(path: Option<PathBuf>) {
    use Unseen::{Capable, Go, SetUser, Static};
    let unseen = path.map_or(Ok(()), |path| unseen::check(&path));
    if let Err(error @ (Capable(_) | Go(_) | SetUser(_) | Static(_))) = unseen {
        say(&format!("{error}, and its sockets are the kernel's"));
    }
}

/// # Safety
/// As of libc's calls.
unsafe fn text<'a>(name: *const c_char) -> Option<&'a OsStr> {
    // SAFETY: the caller's promise.
    (!is_nowhere(name)).then(|| OsStr::from_bytes(unsafe { CStr::from_ptr(name) }.to_bytes()))
}

/// # Safety
/// As of libc's calls.
unsafe fn in_path(file: *const c_char) -> Option<PathBuf> {
    // SAFETY: the caller's promise; `environ` is the program's.
    let (file, path) = unsafe { (text(file)?, text(libc::getenv(c"PATH".as_ptr()))) };
    unseen::find(file, path.unwrap_or_default()).ok()
}

/// The call with an environment that has ours.
///
/// # Safety
/// As of libc's calls.
unsafe fn with_ours(environment: Strings, call: impl FnOnce(Strings) -> c_int) -> c_int {
    if !lock::is_filled() || environment.is_null() {
        return call(environment);
    }
    // SAFETY: the caller's promise.
    let mapped = unsafe { completed(environment) };
    call(
        mapped
            .as_ref()
            .map_or(environment, |mapped| mapped.at.cast()),
    )
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn execve(
    path: *const c_char,
    arguments: Strings,
    environment: Strings,
) -> c_int {
    // SAFETY: as libc's.
    before_exec(|| unsafe { text(path) }.map(PathBuf::from));
    // SAFETY: as libc's.
    unsafe {
        with_ours(environment, |environment| {
            real::execve(path, arguments, environment)
        })
    }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn execv(path: *const c_char, arguments: Strings) -> c_int {
    // SAFETY: as libc's.
    unsafe { execve(path, arguments, environ) }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn execvpe(
    file: *const c_char,
    arguments: Strings,
    environment: Strings,
) -> c_int {
    // SAFETY: as libc's.
    before_exec(|| unsafe { in_path(file) });
    // SAFETY: as libc's.
    unsafe {
        with_ours(environment, |environment| {
            real::execvpe(file, arguments, environment)
        })
    }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn execvp(file: *const c_char, arguments: Strings) -> c_int {
    // SAFETY: as libc's.
    unsafe { execvpe(file, arguments, environ) }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn fexecve(
    fd: c_int,
    arguments: Strings,
    environment: Strings,
) -> c_int {
    before_exec(|| Some(format!("/proc/self/fd/{fd}").into()));
    // SAFETY: as libc's.
    unsafe {
        with_ours(environment, |environment| {
            real::fexecve(fd, arguments, environment)
        })
    }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn execveat(
    folder: c_int,
    path: *const c_char,
    arguments: Strings,
    environment: Strings,
    flags: c_int,
) -> c_int {
    let of = || match folder {
        libc::AT_FDCWD => PathBuf::new(),
        folder => format!("/proc/self/fd/{folder}").into(),
    };
    // SAFETY: as libc's.
    before_exec(|| unsafe { text(path) }.map(|path| of().join(path)));
    // SAFETY: as libc's.
    unsafe {
        with_ours(environment, |environment| {
            real::execveat(folder, path, arguments, environment, flags)
        })
    }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn posix_spawn(
    child: *mut libc::pid_t,
    path: *const c_char,
    actions: *const libc::posix_spawn_file_actions_t,
    attributes: *const libc::posix_spawnattr_t,
    arguments: Strings,
    environment: Strings,
) -> c_int {
    // SAFETY: as libc's.
    unsafe {
        if is_to_look() {
            say_whether_seen(text(path).map(PathBuf::from));
        }
        with_ours(environment, |environment| {
            real::posix_spawn(child, path, actions, attributes, arguments, environment)
        })
    }
}

#[unsafe(no_mangle)]
pub(super) unsafe extern "C-unwind" fn posix_spawnp(
    child: *mut libc::pid_t,
    file: *const c_char,
    actions: *const libc::posix_spawn_file_actions_t,
    attributes: *const libc::posix_spawnattr_t,
    arguments: Strings,
    environment: Strings,
) -> c_int {
    // SAFETY: as libc's.
    unsafe {
        if is_to_look() {
            say_whether_seen(in_path(file));
        }
        with_ours(environment, |environment| {
            real::posix_spawnp(child, file, actions, attributes, arguments, environment)
        })
    }
}
