//! Whether every unwinder of a process asks the C library for unwind tables, so that it can be given those of copies.
use crate::locate::{Image, Raises, basename, is_raising};

/// glibc 2.35; libgcc since GCC 12 asks nothing else.
pub const FIND_OBJECT: &str = "_dl_find_object";
/// What unwinders asked before, and others ask today.
const ITERATE: &str = "dl_iterate_phdr";

/// The functions that are asked: a module of `images` and a function of it.
///
/// # Errors
/// What keeps some unwinder from being answered, in words.
pub fn asked(images: &[&Image]) -> Result<Vec<(usize, usize)>, String> {
    let mut asked = Vec::new();
    for (m, image) in images.iter().enumerate() {
        let functions = image.functions().iter().enumerate();
        // The dynamic loader's own is reached through the C library's alone.
        let mut own = functions.filter(|(_, f)| f.names().any(|name| name == FIND_OBJECT));
        match own.next() {
            Some((n, _)) if !image.is_dynamic_loader() => asked.push((m, n)),
            _ if asks_elsewhere(image) => {
                let name = basename(image.path());
                return Err(format!("{name} has an unwinder that asks no {FIND_OBJECT}"));
            }
            _ => {}
        }
    }
    match asked.is_empty() {
        true => Err(format!("no module defines {FIND_OBJECT} (glibc 2.35)")),
        false => Ok(asked),
    }
}

/// An unwinder of its own that looks tables up in another way.
fn asks_elsewhere(image: &Image) -> bool {
    let imports = |wanted: &str| image.imports().any(|name| name == wanted);
    if image.is_dynamic_loader() || imports(FIND_OBJECT) {
        return false;
    }
    let facts = image.unwinds();
    let defines = || {
        let mut names = image.functions().iter().flat_map(|f| f.names());
        names.any(|name| name.starts_with("_Unwind_") && is_raising(name))
    };
    if image.is_unwinder() || facts.raises == Raises::WhereCalled && defines() {
        return true;
    }
    // Linked in, and stripped: landing pads that go on with nothing that is imported.
    let goes_on = || image.imports().any(|name| name.starts_with("_Unwind_"));
    (facts.lands || facts.catches) && imports(ITERATE) && !goes_on()
}
