//! Names as people read them.
use std::fmt::{self, Write};

/// Substitutions double a name with every few characters of its mangled form; real ones reach ten
/// times as many.
const DEMANGLED_RATIO_MAX: usize = 32;
const DEMANGLED_FREE_BYTES: usize = 1024;

/// Demangled C++ or Rust; anything else as it is, and what would be out of all proportion.
pub fn demangle(raw: &str) -> String {
    let mut out = Bounded {
        text: String::new(),
        left: raw.len() * DEMANGLED_RATIO_MAX + DEMANGLED_FREE_BYTES,
    };
    let done = if let Ok(rust) = rustc_demangle::try_demangle(raw) {
        write!(out, "{rust:#}").is_ok()
    } else if raw.starts_with("_Z")
        && let Ok(symbol) = cpp_demangle::Symbol::new(raw)
    {
        let options = cpp_demangle::DemangleOptions::default();
        symbol.structured_demangle(&mut out, &options).is_ok()
    } else {
        false
    };
    match done {
        true => out.text,
        false => raw.to_owned(),
    }
}

struct Bounded {
    text: String,
    left: usize,
}

impl Write for Bounded {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        self.left = self.left.checked_sub(part.len()).ok_or(fmt::Error)?;
        self.text.push_str(part);
        Ok(())
    }
}

/// The name of the function that a fragment belongs to: `foo` of `foo.cold` (GCC, LLVM's function
/// splitting), `foo.cold.3` (GCC 8, BOLT), `foo.cold.1.llvm.77` (promoted by ThinLTO), `foo.warm` (BOLT). What the
/// compilers put before it (`.part.0`, `.constprop.1`, `.__uniq.5`) belongs to the function's name.
/// LLVM's hot-cold splitting names functions so that are called: see [`is_numbered`].
pub fn fragment_of(raw: &str) -> Option<&str> {
    let own = without_number(raw, ".llvm").unwrap_or(raw);
    let own = without_number(own, ".lto_priv").unwrap_or(own);
    let stem = own
        .strip_suffix(".cold")
        .or_else(|| own.strip_suffix(".warm"))
        .or_else(|| without_number(own, ".cold"))?;
    // Rust's old mangling writes `::` as `..`.
    (!stem.is_empty() && !stem.ends_with('.')).then_some(stem)
}

/// Whether a fragment's name has a number, so that it may be a function of its own.
pub fn is_numbered(raw: &str) -> bool {
    raw.ends_with(|last: char| last.is_ascii_digit())
}

/// What stands before `suffix` and `.N`.
fn without_number<'a>(name: &'a str, suffix: &str) -> Option<&'a str> {
    let (before, number) = name.rsplit_once('.')?;
    let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    before.strip_suffix(suffix).filter(|_| is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages() {
        assert_eq!(demangle("_ZN3foo3barEi"), "foo::bar(int)");
        assert_eq!(demangle("_RNvC6_123foo3bar"), "123foo::bar");
        assert_eq!(demangle("ngx_http_handler"), "ngx_http_handler");
        assert_eq!(demangle("_Zgarbage!"), "_Zgarbage!");
    }

    #[test]
    fn names_that_double_at_every_level_stay_mangled() {
        // A<int, int>, then A of two of the argument before, and so on.
        let levels = "0123456789ABCDEF".chars();
        let doubled: String = levels.map(|n| format!("S_IS{n}_S{n}_E")).collect();
        let few = "_Z1f1AIiiES_IS0_S0_E";
        assert_eq!(
            demangle(few),
            "f(A<int, int>, A<A<int, int>, A<int, int> >)"
        );
        let raw = format!("_Z1f1AIiiE{doubled}");
        assert_eq!(demangle(&raw), raw);
    }

    #[test]
    fn fragments_go_by_their_whole_ending() {
        for (name, function) in [
            ("foo.cold", "foo"),
            ("foo.cold.7", "foo"),
            ("foo.part.0.cold", "foo.part.0"),
            ("foo.constprop.0.isra.1.cold", "foo.constprop.0.isra.1"),
            ("foo.__uniq.5.cold", "foo.__uniq.5"),
            ("foo.lto_priv.0.cold", "foo.lto_priv.0"),
            ("foo.cold.1.llvm.77", "foo"),
            ("foo.warm", "foo"),
            ("_ZN3nf3aclEv.cold", "_ZN3nf3aclEv"),
        ] {
            assert_eq!(fragment_of(name), Some(function), "{name}");
        }
        for function in [
            "scold",
            ".cold",
            "foo.cold.",
            "foo.coldest",
            "foo.cold.x",
            "foo.cold_start",
            "foo.warm.up",
            "foo.cold.part.0",
            "_ZN33_$LT$nf..cold..Bar$u20$as$u20$T$GT$3fooE",
            "nf..cold",
            "foo..cold.1",
        ] {
            assert_eq!(fragment_of(function), None, "{function}");
        }
        assert!(is_numbered("foo.cold.1") && !is_numbered("foo.cold"));
    }
}
