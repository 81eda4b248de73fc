//! Functions that are never touched, whatever the user asks for: those whose copy could break the
//! process, and those that do not return the way a call does.

/// The reason when `raw_name` (as in the symbol table, version stripped) is on the list.
pub fn reason(raw_name: &str) -> Option<&'static str> {
    let name = raw_name.split('@').next().unwrap_or(raw_name);
    if EXACT.binary_search_by(|(n, _)| (*n).cmp(name)).is_ok() {
        let at = EXACT.binary_search_by(|(n, _)| (*n).cmp(name)).ok()?;
        return Some(EXACT[at].1);
    }
    PREFIXES
        .iter()
        .find(|(p, _)| name.starts_with(p))
        .map(|(_, why)| *why)
}

/// Functions that inspect their return address: to find the module that called them, to count, to come back elsewhere.
pub fn is_caller_sensitive(raw_name: &str) -> bool {
    let name = raw_name.split('@').next().unwrap_or(raw_name);
    CALLER_SENSITIVE.contains(&name)
}

const CALLER_SENSITIVE: &[&str] = &[
    // gprof counts by the caller's address (gcc -pg, -mfentry).
    "__fentry__",
    "__libc_dlopen_mode",
    "__libc_dlsym",
    // glibc looks for the caller's namespace (elf/dl-iteratephdr.c).
    "dl_iterate_phdr",
    "dlmopen",
    "dlopen",
    "dlsym",
    "dlvsym",
    // It comes back behind the `ret` that follows its call (gcc -fsplit-stack).
    "__morestack",
    "__morestack_non_split",
    "_mcount",
    "mcount",
];

const CHILD: &str = "a child process or thread returns from it on its own";
pub const TWICE: &str = "it can return twice or not at all";
const START: &str = "process start-up code";
const LOADER: &str = "part of the dynamic loader's own protocol";
const UNWIND: &str = "part of the unwinder";
const CANARY: &str = "called from instrumented or failing code only";
/// musl, and glibc since 2.41: the signal handler of pthread_cancel compares the interrupted place
/// with labels of this function.
const CANCEL: &str = "pthread_cancel looks for the place in it where a thread waits";
const SIGNAL: &str = "signal return trampoline";

const EXACT: &[(&str, &str)] = &[
    ("__GI___clone", CHILD),
    ("__GI___sigsetjmp", TWICE),
    ("____longjmp_chk", TWICE),
    ("__clone", CHILD),
    ("__clone3", CHILD),
    ("__clone_internal", CHILD),
    ("__cyg_profile_func_enter", CANARY),
    ("__cyg_profile_func_exit", CANARY),
    ("__do_global_dtors_aux", START),
    ("__fentry__", CANARY),
    ("__getcontext", TWICE),
    ("__libc_csu_init", START),
    ("__libc_longjmp", TWICE),
    ("__libc_siglongjmp", TWICE),
    ("__libc_start_call_main", START),
    ("__libc_start_main", START),
    ("__libc_start_main_impl", START),
    ("__libc_vfork", CHILD),
    ("__longjmp", TWICE),
    ("__longjmp_cancel", TWICE),
    ("__longjmp_chk", TWICE),
    ("__makecontext", TWICE),
    ("__restore_rt", SIGNAL),
    ("__setcontext", TWICE),
    ("__setjmp", TWICE),
    ("__sigsetjmp", TWICE),
    ("__stack_chk_fail", CANARY),
    ("__start_context", TWICE),
    ("__swapcontext", TWICE),
    ("__syscall_cancel_arch", CANCEL),
    ("__syscall_cp_asm", CANCEL),
    ("__tls_get_addr", LOADER),
    ("__unmapself", CHILD),
    ("__vfork", CHILD),
    ("_fini", START),
    ("_init", START),
    ("_longjmp", TWICE),
    ("_mcount", CANARY),
    ("_setjmp", TWICE),
    ("_start", START),
    ("clone", CHILD),
    ("clone3", CHILD),
    ("deregister_tm_clones", START),
    ("frame_dummy", START),
    ("getcontext", TWICE),
    ("longjmp", TWICE),
    ("makecontext", TWICE),
    ("mcount", CANARY),
    ("register_tm_clones", START),
    ("setcontext", TWICE),
    ("setjmp", TWICE),
    ("siglongjmp", TWICE),
    ("sigsetjmp", TWICE),
    ("swapcontext", TWICE),
    ("vfork", CHILD),
];

const PREFIXES: &[(&str, &str)] = &[
    ("_Unwind_", UNWIND),
    ("__cxa_", UNWIND),
    ("__gcc_personality", UNWIND),
    ("__gxx_personality", UNWIND),
    ("_dl_", LOADER),
    ("__dl_", LOADER),
    ("__rust_try", UNWIND),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_is_sorted_for_the_search() {
        assert!(EXACT.windows(2).all(|w| w[0].0 < w[1].0));
    }

    #[test]
    fn versions_and_prefixes_are_seen() {
        assert!(reason("vfork@@GLIBC_2.2.5").is_some());
        assert!(reason("_Unwind_Resume").is_some());
        assert!(reason("clone_config").is_none());
        assert!(is_caller_sensitive("dlsym@GLIBC_2.34"));
    }
}
