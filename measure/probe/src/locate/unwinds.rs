//! Stack unwinding facts of a file: whether its code raises exceptions, catches them, has
//! clean-ups that run while frames are unwound, or ends threads in a way that unwinds them.
use super::eh_frame::Fde;
use object::{Object, ObjectSymbol};
use std::path::Path;

/// How a file starts exceptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Raises {
    #[default]
    No,
    /// It imports what starts one, or it catches and nothing in it has a name (stripped and linked
    /// statically).
    Yes,
    /// It defines what starts one (an unwinder or a C++ library linked into it): who calls that
    /// decides. nongnu libunwind defines it for programs that only want backtraces.
    WhereCalled,
}

/// Libraries whose place in unwinding is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    #[default]
    Program,
    /// libgcc_s, libunwind, libstdc++, libc++: they raise for those who ask them to.
    LanguageRuntime,
    /// libc and what is built with it.
    SystemLibrary,
}

#[derive(Debug, Clone, Default)]
pub struct UnwindFacts {
    pub role: Role,
    pub raises: Raises,
    /// Some frame of it can stop an exception (a type table in its landing pads, or a personality
    /// routine of its own).
    pub catches: bool,
    /// Some frame of it has landing pads: destructors, `__attribute__((cleanup))`.
    pub lands: bool,
    /// `pthread_cancel`, when it is imported or linked in.
    pub cancels: bool,
    /// `pthread_exit` or `thrd_exit`, likewise.
    pub exits_threads: bool,
    /// `pthread_setcanceltype`: threads may be cancelled at any instruction.
    pub cancels_anywhere: bool,
    /// Ending a thread unwinds its stack: glibc. musl keeps a list of its own.
    pub forced_unwinder: bool,
}

/// Starts an exception (Itanium C++ ABI; Rust and LuaJIT use the same). Not `_Unwind_Resume`, which
/// continues in landing pads what another raised.
pub fn is_raising(name: &str) -> bool {
    const EXACT: [&str; 9] = [
        "_Unwind_ForcedUnwind",
        "_Unwind_RaiseException",
        "_Unwind_Resume_or_Rethrow",
        "__cxa_bad_cast",
        "__cxa_bad_typeid",
        "__cxa_rethrow",
        "__cxa_throw",
        "__cxa_throw_bad_array_new_length",
        "_ZSt17rethrow_exceptionNSt15__exception_ptr13exception_ptrE",
    ];
    EXACT.contains(&bare(name))
}

/// What an exception can come out of when a file imports it: also functions of the C++ library.
pub fn is_raising_import(name: &str) -> bool {
    is_raising(name) || makes_arrays(name) || allocates(name) || std_may_throw(name)
}

/// Calls constructors, or raises where there is too much (Itanium C++ ABI, 3.3.3).
fn makes_arrays(name: &str) -> bool {
    ["__cxa_vec_new", "__cxa_vec_c"]
        .iter()
        .any(|prefix| bare(name).starts_with(prefix))
}

/// `operator new`, but for the variants that return a null pointer.
fn allocates(name: &str) -> bool {
    let name = bare(name);
    (name.starts_with("_Znw") || name.starts_with("_Zna")) && !name.ends_with("nothrow_t")
}

/// A function of `std::` that is not known never to throw.
fn std_may_throw(name: &str) -> bool {
    const NEVER: [&str; 8] = [
        "_ZSt9terminatev",
        "_ZSt15get_new_handlerv",
        "_ZSt15set_new_handlerPFvvE",
        "_ZSt13set_terminatePFvvE",
        "_ZSt4cerr",
        "_ZSt4cout",
        "_ZNSt8ios_base4InitC1Ev",
        "_ZNSt8ios_base4InitD1Ev",
    ];
    let name = bare(name);
    let std = ["_ZSt", "_ZNSt", "_ZNKSt"]
        .iter()
        .any(|prefix| name.starts_with(prefix));
    // Objects, and destructors: `_ZNSt…D1Ev`.
    let quiet = name.starts_with("_ZSt7nothrow")
        || name.starts_with("_ZNSt9exceptionD")
        || name.starts_with("_ZNSt9bad_allocD");
    std && !quiet && !NEVER.contains(&name)
}

/// Without the version.
pub fn bare(name: &str) -> &str {
    name.split('@').next().unwrap_or(name)
}

impl UnwindFacts {
    pub fn read(file: &object::File, path: &Path, fdes: &[Fde]) -> UnwindFacts {
        let mut facts = UnwindFacts {
            role: role(path),
            catches: fdes.iter().any(|f| f.catches),
            lands: fdes.iter().any(|f| f.has_lsda || f.catches),
            ..UnwindFacts::default()
        };
        let mut imports_raising = false;
        let mut defines_raising = false;
        let mut knows_unwinding = false;
        const KNOWN: [&str; 2] = ["__cxa_begin_catch", "_Unwind_Resume"];
        for symbol in file.dynamic_symbols().chain(file.symbols()) {
            let Ok(name) = symbol.name().map(bare) else {
                continue;
            };
            knows_unwinding |= is_raising(name) || KNOWN.contains(&name);
            match name {
                "pthread_cancel" => facts.cancels = true,
                "pthread_exit" | "thrd_exit" => facts.exits_threads = true,
                "pthread_setcanceltype" => facts.cancels_anywhere = true,
                "_Unwind_ForcedUnwind" | "__pthread_unwind" => facts.forced_unwinder = true,
                _ => {}
            }
            // The unwinding that it begins ends in a function of its own.
            facts.catches |= symbol.is_undefined() && name == "_Unwind_ForcedUnwind";
            match symbol.is_undefined() {
                true => imports_raising |= is_raising_import(name),
                false => defines_raising |= is_raising(name),
            }
        }
        facts.raises = match (imports_raising, defines_raising) {
            (true, _) => Raises::Yes,
            (false, true) => Raises::WhereCalled,
            (false, false) if facts.catches && !knows_unwinding => Raises::Yes,
            (false, false) => Raises::No,
        };
        facts.forced_unwinder |= facts.role == Role::SystemLibrary && is_glibc(path);
        facts
    }

    pub fn is_program(&self) -> bool {
        self.role == Role::Program
    }
}

fn role(path: &Path) -> Role {
    const RUNTIME: [&str; 6] = [
        "libgcc_s.so",
        "libunwind",
        "libstdc++.so",
        "libc++.so",
        "libc++abi.so",
        "libsupc++.so",
    ];
    // `libc-2.31.so` and the like: glibc before 2.34.
    const SYSTEM: [&str; 19] = [
        "ld-2.",
        "ld-linux",
        "ld-musl",
        "libanl.so",
        "libc-2.",
        "libc.musl",
        "libc.so",
        "libdl-2.",
        "libdl.so",
        "libm-2.",
        "libm.so",
        "libmvec.so",
        "libnsl.so",
        "libnss_",
        "libpthread-2.",
        "libpthread.so",
        "libresolv.so",
        "librt-2.",
        "librt.so",
    ];
    let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("");
    let is_one_of = |names: &[&str]| names.iter().any(|n| name.starts_with(n));
    if is_one_of(&RUNTIME) {
        Role::LanguageRuntime
    } else if is_one_of(&SYSTEM) {
        Role::SystemLibrary
    } else {
        Role::Program
    }
}

fn is_glibc(path: &Path) -> bool {
    let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("");
    name == "libc.so.6" || name.starts_with("libc-2.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_start_an_exception() {
        for name in [
            "__cxa_throw",
            "_Unwind_RaiseException@GCC_3.0",
            "_Znwm",
            "_ZSt24__throw_out_of_range_fmtPKcz",
        ] {
            assert!(is_raising_import(name), "{name}");
        }
        for name in [
            "_Unwind_Backtrace",
            "_ZdlPv",
            "_ZnwmRKSt9nothrow_t",
            "_ZSt9terminatev",
            "__gxx_personality_v0",
            "malloc",
        ] {
            assert!(!is_raising_import(name), "{name}");
        }
    }

    #[test]
    fn known_libraries() {
        let role = |name: &str| role(Path::new(name));
        assert_eq!(role("/lib/libunwind.so.8.0.1"), Role::LanguageRuntime);
        assert_eq!(role("/lib/libc.so.6"), Role::SystemLibrary);
        assert_eq!(role("/lib/libcrypto.so.3"), Role::Program);
        assert_eq!(role("/usr/sbin/nginx"), Role::Program);
    }
}
