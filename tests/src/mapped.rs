//! What hopscope has mapped and opened in a process, told by the exact names of its memfds: a path may
//! hold the word hopscope, and a clone's usually does.
use std::io;

/// `ARENA_NAME` and `POOL_NAME` of `hopscope-probe`, as the kernel shows them.
const ARENA: &str = "/memfd:hopscope-code (deleted)";
const POOL: &str = "/memfd:hopscope-rings (deleted)";

/// One mapping of ours.
#[derive(Debug, PartialEq, Eq)]
pub struct Mapped {
    pub bytes: u64,
    pub executable: bool,
    /// As `/proc/PID/maps` has it.
    pub line: String,
}

/// Mappings of ours in `pid`.
///
/// # Errors
/// It is gone, or may not be looked at.
pub fn mapped(pid: i32) -> io::Result<Vec<Mapped>> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps"))?;
    maps.lines().filter_map(ours).map(Ok).collect()
}

/// Descriptors of ours that are open in `pid`, as `/proc/PID/fd` shows them.
///
/// # Errors
/// It is gone, or may not be looked at.
pub fn descriptors(pid: i32) -> io::Result<Vec<String>> {
    let mut open = Vec::new();
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd"))? {
        // Its own may be closed meanwhile.
        let link = std::fs::read_link(entry?.path()).unwrap_or_default();
        let link = link.to_string_lossy().into_owned();
        if is_ours(&link) {
            open.push(link);
        }
    }
    Ok(open)
}

fn is_ours(name: &str) -> bool {
    name == ARENA || name == POOL
}

/// proc(5): address, permissions, offset, device, inode, and the name, which may hold blanks.
fn ours(line: &str) -> Option<Mapped> {
    let mut fields = line.splitn(6, ' ');
    let (from, to) = fields.next()?.split_once('-')?;
    let permissions = fields.next()?;
    if !is_ours(fields.nth(3)?.trim_start()) {
        return None;
    }
    let address = |text| u64::from_str_radix(text, 16).ok();
    Some(Mapped {
        bytes: address(to)? - address(from)?,
        executable: permissions.contains('x'),
        line: line.into(),
    })
}
