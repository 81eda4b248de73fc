//! Where the library is that is loaded with the program.
use anyhow::{Context, bail};
use hopscope_stack_bypass::LIBRARY;
use std::path::PathBuf;

/// Beside this program, or where `make install` puts it.
pub(super) fn find() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe().context("/proc/self/exe")?;
    let folder = program.parent().context("/proc/self/exe")?;
    let places = [
        folder.join(LIBRARY),
        folder.join("../lib/hopscope").join(LIBRARY),
    ];
    for place in &places {
        if let Ok(found) = place.canonicalize() {
            return Ok(found);
        }
    }
    bail!(
        "{LIBRARY} is neither beside {} nor in ../lib/hopscope: `make build` makes it, `make install` installs it",
        program.display()
    )
}
