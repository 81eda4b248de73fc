//! File and line of a function, from DWARF in the file or in a separate debug file.
use gimli::{EndianRcSlice, LittleEndian};
use object::{CompressionFormat, Object, ObjectSection};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::rc::Rc;

pub(super) type Reader = EndianRcSlice<LittleEndian>;

/// DWARF of one file. Not shared between threads.
pub struct Lines {
    context: addr2line::Context<Reader>,
}

impl Lines {
    pub fn load(file: &object::File) -> Option<Lines> {
        let dwarf = dwarf(file, ".debug_line")?;
        let context = addr2line::Context::from_dwarf(dwarf).ok()?;
        Some(Lines { context })
    }

    pub fn find(&self, svma: u64) -> Option<(String, u32)> {
        let location = self.context.find_location(svma).ok()??;
        Some((location.file?.to_owned(), location.line?))
    }
}

/// The DWARF of a file that has this section.
pub(super) fn dwarf(file: &object::File, needed: &str) -> Option<gimli::Dwarf<Reader>> {
    let load = |id: gimli::SectionId| -> Result<Reader, gimli::Error> {
        let data = file.section_by_name(id.name()).and_then(|s| content(&s));
        Ok(EndianRcSlice::new(
            Rc::from(data.unwrap_or_default()),
            LittleEndian,
        ))
    };
    let lines = file.section_by_name(needed);
    lines.and_then(|s| content(&s))?;
    gimli::Dwarf::load(load).ok()
}

/// Most debug files of distributions are compressed with zlib; zstd is not read.
fn content<'d>(section: &impl ObjectSection<'d>) -> Option<Cow<'d, [u8]>> {
    let raw = section.compressed_data().ok()?;
    match raw.format {
        CompressionFormat::None => Some(Cow::Borrowed(raw.data)),
        CompressionFormat::Zlib => {
            let limit = usize::try_from(raw.uncompressed_size).ok()?;
            let data = miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(raw.data, limit);
            data.ok().map(Cow::Owned)
        }
        _ => None,
    }
}

/// A debug file of another build would name the wrong functions.
pub fn belongs(debug: &object::File, bytes: &[u8], build_id: &str, file: &object::File) -> bool {
    if !build_id.is_empty() {
        return super::image::build_id(debug) == build_id;
    }
    let link = file.gnu_debuglink().ok().flatten();
    link.is_some_and(|(_, crc)| crc32fast::hash(bytes) == crc)
}

/// Where Debian and others put the debug file of a build id. MiniDebugInfo (`.gnu_debugdata`) is
/// not read.
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
