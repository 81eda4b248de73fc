//! Code whose own runtime walks or moves the stacks that it runs on: it looks return addresses up
//! in tables of its own, and ends the program when it finds the address of a copy.
use object::{Object, ObjectSection, ObjectSymbol};

const GO: &str = "Go code: its runtime looks up every return address when it moves a stack";
const OCAML: &str = "OCaml code: its collector looks up every return address";
const GRAAL: &str = "a GraalVM native image: its collector looks up every return address";
const DOTNET: &str = "compiled .NET code: its collector looks up every return address";
const DART: &str = "compiled Dart code: its collector looks up every return address";

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
