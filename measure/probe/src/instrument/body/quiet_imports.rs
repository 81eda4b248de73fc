//! Functions of the C library by what can come out of them: exceptions of callbacks, and the end of
//! a cancelled thread.
use crate::locate::bare;

/// Functions of libc that call what they are given: an exception of it passes through them.
pub fn calls_back(name: &str) -> bool {
    let name = bare(name).trim_start_matches("__");
    let name = name.trim_end_matches("64");
    CALLS_BACK.binary_search(&name).is_ok()
}

/// Functions of libc in which a thread is not ended: no cancellation points, and known not to call
/// any. Whatever is not listed counts as one, standard I/O among them.
pub fn never_cancels(name: &str) -> bool {
    let name = bare(name).trim_start_matches('_');
    let name = name.strip_suffix("_chk").unwrap_or(name);
    let starts = NEVER_CANCELS_STARTS.iter().any(|p| name.starts_with(p));
    starts || NEVER_CANCELS.binary_search(&name).is_ok()
}

const CALLS_BACK: &[&str] = &[
    "argp_parse",
    "bsearch",
    "call_once",
    "clone",
    "dl_iterate_phdr",
    "dlclose",
    "dlmopen",
    "dlopen",
    "fopencookie",
    "fts_children",
    "fts_open",
    "fts_read",
    "ftw",
    "getcontext",
    "glob",
    "glob_pattern_p",
    "hcreate_r",
    "lfind",
    "lsearch",
    "makecontext",
    "nftw",
    "obstack_newchunk",
    "pthread_once",
    "qsort",
    "qsort_r",
    "register_printf_function",
    "register_printf_specifier",
    "scandir",
    "scandirat",
    "setcontext",
    "swapcontext",
    "tdelete",
    "tdestroy",
    "tfind",
    "tsearch",
    "twalk",
    "twalk_r",
    "xpg_basename",
];

const NEVER_CANCELS_STARTS: &[&str] = &[
    "atomic_",
    "clock_get",
    "ctype_",
    "errno_",
    "inet_",
    "isal",
    "isdigit",
    "isspace",
    "isupper",
    "isxdigit",
    "mem",
    "pthread_attr_",
    "pthread_condattr_",
    "pthread_mutex_",
    "pthread_mutexattr_",
    "pthread_rwlock_",
    "pthread_spin_",
    "sigaction",
    "sigaddset",
    "sigemptyset",
    "sigfillset",
    "sigismember",
    "stp",
    "str",
    "tolower",
    "toupper",
    "wcs",
    "wmem",
];

const NEVER_CANCELS: &[&str] = &[
    "abort",
    "abs",
    "aligned_alloc",
    "assert_fail",
    "atan",
    "atoi",
    "atol",
    "atoll",
    "calloc",
    "cbrt",
    "ceil",
    "clock",
    "cos",
    "difftime",
    "div",
    "exp",
    "fabs",
    "ffs",
    "floor",
    "fmod",
    "free",
    "getegid",
    "getenv",
    "geteuid",
    "getgid",
    "getpagesize",
    "getpid",
    "getppid",
    "getrandom",
    "gettid",
    "gettimeofday",
    "getuid",
    "hypot",
    "labs",
    "llabs",
    "log",
    "log10",
    "log2",
    "longjmp_chk",
    "lrand48",
    "malloc",
    "malloc_usable_size",
    "mktime",
    "posix_memalign",
    "pow",
    "pthread_equal",
    "pthread_getspecific",
    "pthread_key_create",
    "pthread_self",
    "pthread_setspecific",
    "rand",
    "rand_r",
    "random",
    "realloc",
    "round",
    "sched_getcpu",
    "sched_yield",
    "sin",
    "sqrt",
    "srand",
    "stack_chk_fail",
    "tan",
    "time",
    "tls_get_addr",
    "trunc",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted_for_the_search() {
        assert!(CALLS_BACK.is_sorted() && NEVER_CANCELS.is_sorted());
    }

    #[test]
    fn versions_and_variants() {
        assert!(calls_back("qsort@GLIBC_2.2.5") && calls_back("nftw64") && calls_back("__qsort_r"));
        assert!(!calls_back("memcpy") && !calls_back("malloc"));
        assert!(never_cancels("__memcpy_chk") && never_cancels("malloc"));
        // `sigsuspend`, `sigwait`: a thread waits in them.
        for name in [
            "read",
            "usleep",
            "pthread_cond_wait",
            "printf",
            "sigwait",
            "sigsuspend",
        ] {
            assert!(!never_cancels(name), "{name}");
        }
    }
}
