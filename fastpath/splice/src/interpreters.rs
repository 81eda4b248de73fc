//! Programs whose scripts choose the request of ioctl(2) themselves: Python's `fcntl.ioctl`, Perl's `ioctl`, Ruby's
//! `IO#ioctl`, and what others call by a foreign function interface. FIONREAD is no instruction of theirs.

/// Names of their files, without versions.
pub const NAMES: &[&str] = &[
    "clisp", "ecl", "guile", "julia", "lisp", "luajit", "moar", "mono", "newlisp", "perl", "php",
    "php-cgi", "php-fpm", "pypy", "python", "racket", "ruby", "sbcl",
];

/// The same, in programs that embed them: gdb, mod_perl, uWSGI.
const LIBRARIES: &[&str] = &[
    "libecl",
    "libguile",
    "libjulia",
    "libluajit",
    "libmoar",
    "libmono",
    "libmonosgen",
    "libperl",
    "libphp",
    "libpypy",
    "libpython",
    "libruby",
];

/// `python3.11` is a version of `python`, and of `python3`; `redis-server` is none of `redis`. The kernel programs
/// have the same rule (`program_is` of `bpf/incompatible.h`).
pub fn is_version_of(name: &str, stem: &str) -> bool {
    let Some(rest) = name.strip_prefix(stem) else {
        return false;
    };
    let version = rest.strip_prefix(['.', '-']).unwrap_or(rest);
    rest.is_empty() || version.starts_with(|first: char| first.is_ascii_digit())
}

/// Is a program's file an interpreter?
pub(crate) fn is_interpreter(name: &str) -> bool {
    NAMES.iter().any(|stem| is_version_of(name, stem))
}

/// Is a library one? `libperl.so.5.36`, `libruby-3.1.so.3.1`.
pub(crate) fn is_library(name: &str) -> bool {
    name.split_once(".so")
        .is_some_and(|(name, _)| LIBRARIES.iter().any(|stem| is_version_of(name, stem)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_belong_to_their_name() {
        for name in [
            "python",
            "python3.11",
            "python3.11-dbg",
            "pypy3-c",
            "perl5.36.0",
            "php-fpm8.2",
            "luajit-2.1.0-beta3",
        ] {
            assert!(is_interpreter(name), "{name}");
        }
        for name in ["pythonista", "perlbal", "redis-server", "php-", "rub"] {
            assert!(!is_interpreter(name), "{name}");
        }
        assert!(is_version_of("python3.11", "python3"));
        assert!(!is_version_of("python2.7", "python3"));
        assert!(!is_version_of("redis-server", "redis"));
    }

    #[test]
    fn libraries_have_versions_too() {
        for name in [
            "libpython3.11.so.1.0",
            "libperl.so.5.36.0",
            "libruby-3.1.so.3.1",
            "libluajit-5.1.so.2",
            "libmonosgen-2.0.so.1",
        ] {
            assert!(is_library(name), "{name}");
        }
        assert!(!is_library("libc.so.6") && !is_library("libperlite.so.1"));
    }
}
