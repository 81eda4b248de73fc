//! Code whose own runtime walks or moves the stacks that it runs on: it looks return addresses up
//! in tables of its own, and ends the program when it finds the address of a copy.
use object::{Object, ObjectSection, ObjectSymbol};
use std::ops::Range;

const GO: &str = "Go code: its runtime looks up every return address when it moves a stack";
const OCAML: &str = "OCaml code: its collector looks up every return address";
const GRAAL: &str = "a GraalVM native image: its collector looks up every return address";
const DOTNET: &str = "compiled .NET code: its collector looks up every return address";
const DART: &str = "compiled Dart code: its collector looks up every return address";

const V8: &str = "a built-in function of V8: its collector looks up every return address in such";

/// Ends of section names. Go's table is `.gopclntab`, also where it was stripped (`-s -w`, `strip`):
/// the program needs it. Where it is relocated (libraries) the linker may put it into
/// `.data.rel.ro`; what the build was stays.
const SECTIONS: [(&str, &str); 6] = [
    (".gopclntab", GO),
    (".go.buildinfo", GO),
    (".note.go.buildid", GO),
    (".svm_heap", GRAAL),
    ("__managedcode", DOTNET),
    (".managed_code", DOTNET),
];

/// The runtime that `file` contains, as a reason to leave all of its code alone.
pub fn find(file: &object::File) -> Option<&'static str> {
    let by_section = file.sections().find_map(|s| {
        let name = s.name().ok()?;
        let known = SECTIONS.iter().find(|(end, _)| name.ends_with(end));
        known.map(|(_, why)| *why)
    });
    let by_symbol = || {
        let mut symbols = file.dynamic_symbols().chain(file.symbols());
        symbols.find_map(|s| (!s.is_undefined()).then(|| of_symbol(s.name().ok()?))?)
    };
    by_section.or_else(by_symbol).or_else(|| {
        let stripped = file.symbols().next().is_none();
        (stripped && holds(file, b"OCAMLRUNPARAM\0")).then_some(OCAML)
    })
}

/// The built-in functions of a V8 that is linked into `file`, as a reason to leave them alone. What is written in C++ around them
/// is of no interest to V8's collector, which ends the program (`maybe_code.has_value()`) at an address that is in none of them.
/// V8 may also copy them elsewhere as they are.
pub fn built_in(file: &object::File) -> Option<(Range<u64>, &'static str)> {
    let symbols = || file.symbols().chain(file.dynamic_symbols());
    let named = |end: &'static str| {
        let of_v8 = move |name: &str| name.starts_with("v8_") && name.ends_with(end);
        let is = move |s: &object::Symbol| !s.is_undefined() && s.name().is_ok_and(of_v8);
        symbols().find(is).map(|s| s.address())
    };
    let start = named("_embedded_blob_code_")?;
    let size = named("_embedded_blob_code_size_").and_then(|at| {
        let mut sections = file.sections();
        let data = sections.find_map(|s| s.data_range(at, 4).ok().flatten())?;
        Some(u64::from(u32::from_le_bytes(data.try_into().ok()?)))
    });
    // Of an unknown size: all that follows in its section.
    let section = || {
        let mut ranges = file
            .sections()
            .map(|s| s.address()..s.address().saturating_add(s.size()));
        ranges.find(|r| r.contains(&start)).map(|r| r.end)
    };
    let end = match size {
        Some(size) => start.saturating_add(size),
        None => section()?,
    };
    Some((start..end, V8))
}

/// Whether constants of `file` hold this text: what OCaml's runtime asks the environment for is all
/// that a stripped program has of it.
fn holds(file: &object::File, text: &[u8]) -> bool {
    let constants = file.section_by_name(".rodata");
    let data = constants.and_then(|s| s.data().ok()).unwrap_or_default();
    data.windows(text.len()).any(|w| w == text)
}

fn of_symbol(name: &str) -> Option<&'static str> {
    if name.starts_with("caml") && (name.ends_with("frametable") || name == "caml_startup") {
        return Some(OCAML);
    }
    match name {
        "runtime.pclntab" | "runtime.gopclntab" => Some(GO),
        "_kDartIsolateSnapshotInstructions" | "_kDartVmSnapshotInstructions" => Some(DART),
        "graal_create_isolate" => Some(GRAAL),
        "coreclr_initialize" => Some(DOTNET),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_of_ocaml() {
        for name in ["caml_frametable", "camlStdlib__frametable", "caml_startup"] {
            assert_eq!(of_symbol(name), Some(OCAML), "{name}");
        }
        assert_eq!(of_symbol("camel_frame"), None);
    }
}
