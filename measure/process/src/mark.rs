//! How one hopscope knows another, whatever its program is called: while it has anything of a target open, it holds a
//! memfd of this name. Descriptors of a target's memfds are that hopscope's own then, and nobody's leftovers.
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::OnceLock;

const NAME: &str = "hopscope";

/// This process's own, open until it ends: made before anything of a target is opened. Children that execute another
/// program do not have it.
pub(super) fn hold() -> io::Result<&'static File> {
    static HELD: OnceLock<File> = OnceLock::new();
    if let Some(held) = HELD.get() {
        return Ok(held);
    }
    let mark = File::from(memfd_create(NAME, MFdFlags::MFD_CLOEXEC)?);
    Ok(HELD.get_or_init(|| mark))
}

/// Whether `pid` holds one. A process that only pretends keeps others from closing what it has open, which is its own
/// to close.
pub fn is_held_by(pid: i32) -> bool {
    let link = format!("/memfd:{NAME} (deleted)");
    let is_one = |fd: fs::DirEntry| fs::read_link(fd.path()).is_ok_and(|to| to == Path::new(&link));
    fs::read_dir(format!("/proc/{pid}/fd")).is_ok_and(|fds| fds.flatten().any(is_one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_holds_one_is_known_and_its_children_are_not() {
        let held = hold().expect("a memfd");
        assert!(is_held_by(std::process::id() as i32), "{held:?}");
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("cat");
        let is_held = is_held_by(child.id() as i32);
        child.kill().expect("killed");
        child.wait().expect("waited for");
        assert!(!is_held);
    }
}
