//! Names as people read them.

/// Demangled C++ or Rust; anything else as it is.
pub fn demangle(raw: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(raw) {
        return format!("{rust:#}");
    }
    if raw.starts_with("_Z")
        && let Ok(symbol) = cpp_demangle::Symbol::new(raw)
        && let Ok(text) = symbol.demangle(&cpp_demangle::DemangleOptions::default())
    {
        return text;
    }
    raw.to_owned()
}

/// The name of the function that a fragment belongs to: `foo.cold`, `foo.cold.3`, `foo.part.0.cold`.
pub fn fragment_of(raw: &str) -> Option<&str> {
    raw.find(".cold").map(|at| &raw[..at])
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
    fn fragments() {
        assert_eq!(fragment_of("foo.part.0.cold"), Some("foo.part.0"));
        assert_eq!(fragment_of("foo.cold.7"), Some("foo"));
        assert_eq!(fragment_of("scold"), None);
    }
}
