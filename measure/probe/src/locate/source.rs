//! File and line of a function, from DWARF in the file or in a separate debug file.
use gimli::{EndianRcSlice, LittleEndian};
use object::{Object, ObjectSection};
use std::path::{Path, PathBuf};
use std::rc::Rc;

type Reader = EndianRcSlice<LittleEndian>;

/// DWARF of one file. Not shared between threads.
pub struct Lines {
    context: addr2line::Context<Reader>,
}

impl Lines {
    pub fn load(file: &object::File) -> Option<Lines> {
        let load = |id: gimli::SectionId| -> Result<Reader, gimli::Error> {
            let section = file.section_by_name(id.name());
            let data = section
                .and_then(|s| s.uncompressed_data().ok())
                .unwrap_or_default();
            Ok(EndianRcSlice::new(Rc::from(&*data), LittleEndian))
        };
        let dwarf = gimli::Dwarf::load(load).ok()?;
        let context = addr2line::Context::from_dwarf(dwarf).ok()?;
        Some(Lines { context })
    }

    pub fn find(&self, svma: u64) -> Option<(String, u32)> {
        let location = self.context.find_location(svma).ok()??;
        Some((location.file?.to_owned(), location.line?))
    }
}

/// Where Debian and others put the debug file of a build id.
pub fn debug_file(build_id: &str, file: &object::File, path: &Path) -> Option<PathBuf> {
    let by_id = (build_id.len() > 2).then(|| {
        PathBuf::from(format!(
            "/usr/lib/debug/.build-id/{}/{}.debug",
            &build_id[..2],
            &build_id[2..]
        ))
    });
    let by_link = file.gnu_debuglink().ok().flatten().and_then(|(name, _)| {
        let name = std::str::from_utf8(name).ok()?;
        let folder = path.parent()?;
        let beside = [folder.join(name), folder.join(".debug").join(name)];
        let global = Path::new("/usr/lib/debug")
            .join(folder.strip_prefix("/").ok()?)
            .join(name);
        beside
            .into_iter()
            .chain([global])
            .find(|p| p.is_file() && p != path)
    });
    by_id.filter(|p| p.is_file()).or(by_link)
}
