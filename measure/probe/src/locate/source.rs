//! File and line of a function, from DWARF in the file or in a separate debug file.
use super::bounds;
use super::files::{self, Links};
use super::inflate::{INFLATED_MAX_BYTES, content};
use gimli::{EndianRcSlice, LittleEndian};
use object::Object;
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::rc::Rc;

pub(super) type Reader = EndianRcSlice<LittleEndian>;

/// Rows of the line table that are looked at to find one of the function's own.
const ROWS_MAX: usize = 256;

/// DWARF of one file. Not shared between threads.
pub struct Lines {
    context: addr2line::Context<Reader>,
}

impl Lines {
    pub(super) fn load(file: &object::File, path: &Path) -> Option<Lines> {
        let dwarf = dwarf(file, ".debug_line", path)?;
        let context = addr2line::Context::from_dwarf(dwarf).ok()?;
        Some(Lines { context })
    }

    /// Of the function in this range: where the first of its instructions that is its own comes from. What
    /// the compiler moved to its begin may be a piece of another function that it inlined.
    pub fn find(&self, svma: u64, size: u64) -> Option<(String, u32)> {
        let rows = self
            .context
            .find_location_range(svma, svma.checked_add(size.max(1))?);
        let mut inlined_into = None;
        for (at, _, location) in rows.ok()?.take(ROWS_MAX) {
            // The first row may begin before the function.
            let mut frames = self
                .context
                .find_frames(at.max(svma))
                .skip_all_loads()
                .ok()?;
            let (mut outermost, mut depth) = (None, 0);
            while let Ok(Some(frame)) = frames.next() {
                outermost = frame.location;
                depth += 1;
            }
            if depth <= 1
                && let (Some(file), Some(line)) = (location.file, location.line)
            {
                return Some((file.to_owned(), line));
            }
            inlined_into = inlined_into.or(outermost);
        }
        // All of it is pieces of others: where the first of them was put.
        let location = inlined_into?;
        Some((location.file?.to_owned(), location.line?))
    }
}

/// The DWARF of a file that has this section. A section that cannot be used is said once, with
/// the reason, and none of the file's is used then.
pub(super) fn dwarf(
    file: &object::File,
    needed: &str,
    path: &Path,
) -> Option<gimli::Dwarf<Reader>> {
    file.section_by_name(needed)?;
    let mut left = INFLATED_MAX_BYTES;
    let load = |id: gimli::SectionId| -> Result<Reader, String> {
        let data = match file.section_by_name(id.name()) {
            Some(section) => {
                content(&section, &mut left).map_err(|why| format!("{}: {why}", id.name()))?
            }
            None => Cow::default(),
        };
        Ok(EndianRcSlice::new(Rc::from(data), LittleEndian))
    };
    gimli::Dwarf::load(load)
        .inspect_err(|why| {
            log::warn!("debug information of {} is not used: {why}", path.display());
        })
        .ok()
}

/// Hex of the GNU build id note, empty without one.
pub(super) fn build_id(file: &object::File) -> String {
    let id = file.build_id().ok().flatten().unwrap_or_default();
    id.iter().map(|b| format!("{b:02x}")).collect()
}

/// A debug file of another build would name the wrong functions.
fn belongs(debug: &object::File, bytes: &[u8], build_id: &str, file: &object::File) -> bool {
    if !build_id.is_empty() {
        return self::build_id(debug) == build_id;
    }
    let link = file.gnu_debuglink().ok().flatten();
    link.is_some_and(|(_, crc)| crc32fast::hash(bytes) == crc)
}

/// Where Debian and others put the debug file of a build id. `.gnu_debugaltlink` and MiniDebugInfo
/// (`.gnu_debugdata`) are not read.
const DEBUG_FILES: &str = "/usr/lib/debug";

/// The debug file of this very build, and what it holds.
pub(super) fn debug_file(
    build_id: &str,
    file: &object::File,
    path: &Path,
) -> Option<(PathBuf, Vec<u8>)> {
    let by_id = (build_id.len() > 2).then(|| {
        Path::new(DEBUG_FILES).join(format!(
            ".build-id/{}/{}.debug",
            &build_id[..2],
            &build_id[2..]
        ))
    });
    let by_link = file.gnu_debuglink().ok().flatten();
    let by_link = by_link.into_iter().flat_map(|(name, _)| {
        let found = linked(name, path);
        if found.is_none() {
            let name = String::from_utf8_lossy(name).into_owned();
            log::warn!(
                "{}: its debug link {name:?} is not the name of a file",
                path.display()
            );
        }
        found.unwrap_or_default()
    });
    let mut candidates = by_id.into_iter().chain(by_link).filter(|p| p != path);
    candidates.find_map(|p| Some((p.clone(), read_debug_file(&p, build_id, file)?)))
}

/// Where a debug link may lead: it names a file, without a folder. `None` when it does not.
fn linked(name: &[u8], path: &Path) -> Option<Vec<PathBuf>> {
    let name = std::str::from_utf8(name).ok()?;
    if name.is_empty() || name == "." || name == ".." || name.contains('/') {
        return None;
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut found = vec![folder.join(name), folder.join(".debug").join(name)];
    if let Ok(inside) = folder.strip_prefix("/") {
        found.push(Path::new(DEBUG_FILES).join(inside).join(name));
    }
    Some(found)
}

/// A file that is there but is not used is said, with the reason.
pub(super) fn read_debug_file(path: &Path, build_id: &str, file: &object::File) -> Option<Vec<u8>> {
    // Beside the program lies what its owner put there. Distributions link in their own folder.
    let links = match path.starts_with(DEBUG_FILES) {
        true => Links::Follow,
        false => Links::Refuse,
    };
    let opened = match files::open_regular(path, links) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return None,
        opened => opened,
    };
    let read = || -> Result<Vec<u8>, String> {
        let opened = opened.map_err(|e| e.to_string())?;
        let bytes = files::read_whole(&opened).map_err(|e| e.to_string())?;
        let debug = object::File::parse(&*bytes).map_err(|e| e.to_string())?;
        if !belongs(&debug, &bytes, build_id, file) {
            return Err("it is of another build".into());
        }
        bounds::check(&debug, bytes.len())?;
        Ok(bytes)
    };
    read()
        .inspect_err(|why| log::warn!("debug file {} is not used: {why}", path.display()))
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_debug_link_is_the_name_of_a_file() {
        let program = Path::new("/opt/nf/nf");
        let found = linked(b"nf.debug", program).unwrap_or_default();
        let expected = [
            "/opt/nf/nf.debug",
            "/opt/nf/.debug/nf.debug",
            "/usr/lib/debug/opt/nf/nf.debug",
        ];
        assert_eq!(found, expected.map(PathBuf::from));
        for name in ["/proc/kmsg", "../nf", "..", ".", "", "a/b"] {
            assert_eq!(linked(name.as_bytes(), program), None, "{name}");
        }
        assert_eq!(linked(b"\xff", program), None);
    }
}
