//! What happens when the library is loaded.
use super::{executing, lock, processes, socket_streams, turns};
use crate::instance::Instance;
use crate::kernel;
use crate::owner::Owner;
use crate::rows;
use crate::say::{self, say};
use crate::sets::descriptors;
use crate::state::State;
use crate::table::{self, Entry};
use crate::ticker::Ticker;
use hopscope_stack_instance::handed::{self, ENVIRONMENT, Handed, HandedInstance, Policy, Reach};
use nix::libc::{self, c_int, c_void};
use std::sync::atomic::Ordering;

#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = processes_end;

extern "C" fn processes_end() {
    socket_streams::flush_all();
    processes::farewell();
}

extern "C" fn at_load() {
    let Some(text) = std::env::var_os(ENVIRONMENT) else {
        return;
    };
    let loaded = text
        .to_str()
        .ok_or_else(|| "no text".to_owned())
        .and_then(load);
    if let Err(error) = loaded {
        // The program must not run on the kernel's stack without a word.
        say(&format!(
            "{ENVIRONMENT} is not what `hopscope stack run` made of it: {error}"
        ));
        // SAFETY: the process ends.
        unsafe { libc::exit(125) };
    }
}

fn load(text: &str) -> Result<(), String> {
    let (config, owner) = text.split_once(',').ok_or("two numbers are expected")?;
    let number = |text: &str| text.parse::<i32>().map_err(|error| error.to_string());
    let (config, owner) = (number(config)?, number(owner)?);
    let mut bytes = vec![0; handed::BYTES_MAX];
    let len = kernel::read_at(config, &mut bytes, 0)
        .map_err(|errno| format!("its descriptor was closed on the way (errno {errno})"))?;
    let mut handed: Handed = handed::parse(&bytes[..len as usize])?;
    keep_own_rules(&mut handed.policy);
    for fd in [config, owner].into_iter().chain(handed.descriptors()) {
        table::set(fd, Entry::Internal);
    }
    executing::remember();
    processes::remember();
    lock::mark(processes::after_fork_in_child);
    say::TRACE.store(handed.trace, Ordering::Relaxed);
    let instance = match handed.instance() {
        Some(instance) => Some(attached(instance, &handed.reach)?),
        None => None,
    };
    let mut state = State::new(handed, Owner::new(owner), Ticker::new(turns::run));
    state.instance = instance;
    lock::fill(state);
    if lock::with(|state| state.instance.is_some()) == Ok(true) {
        recognize();
    }
    // SAFETY: functions of this library, which is never unloaded.
    unsafe {
        // The first that is registered is the last that is called.
        __cxa_at_quick_exit(at_quick_exit, std::ptr::null_mut());
        libc::pthread_atfork(
            Some(before_fork),
            Some(after_fork),
            Some(after_fork_in_child),
        )
    };
    Ok(())
}

unsafe extern "C" {
    /// at_quick_exit(3), which is not in the shared library.
    fn __cxa_at_quick_exit(call: unsafe extern "C" fn(*mut c_void), of: *mut c_void) -> c_int;
}

unsafe extern "C" fn at_quick_exit(_: *mut c_void) {
    processes::farewell();
}

/// Those of other programs say nothing here.
fn keep_own_rules(policy: &mut Policy) {
    let executable = std::fs::read_link("/proc/self/exe");
    if let (Err(error), true) = (&executable, policy.names_programs()) {
        say(&format!(
            "/proc/self/exe: {error}: which program this is cannot be told, and rules with program= do not apply"
        ));
    }
    policy.keep_those_of(&executable.unwrap_or_default());
}

fn attached(instance: &HandedInstance, reach: &Reach) -> Result<Instance, String> {
    let failed = |errno| format!("its table is not to be had (errno {errno})");
    rows::map(instance.table).map_err(failed)?;
    Ok(Instance::new(instance, reach))
}

/// Sockets of the program that started this one, which may have been handed on.
fn recognize() {
    let fds = descriptors();
    let _ = lock::with(|state| state.recognize(&fds));
}

unsafe extern "C" fn before_fork() {
    processes::before_fork();
}

unsafe extern "C" fn after_fork() {
    processes::after_fork();
}

unsafe extern "C" fn after_fork_in_child() {
    processes::after_fork_in_child();
}
