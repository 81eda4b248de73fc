//! Which load of which file something is of. What lies at its address later may be of another one: plug-ins that take each
//! other's place have the same layout more often than not.
use super::image::Image;
use super::mapped::MappedModule;
use super::version::Version;
use hopscope_process::maps::Mapping;
use hopscope_process::procfs;
use std::fs;

/// Where a file's code lies in a process, and which file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Load {
    text: u64,
    /// Where its first byte would lie by the mapping of its code.
    first_byte: u64,
    inode: u64,
    version: Version,
}

impl Load {
    /// `image`: what was read of it.
    pub fn of(module: &MappedModule, image: &Image) -> Load {
        let text = &module.text[0];
        Load {
            text: text.avma.start,
            first_byte: text.avma.start.wrapping_sub(text.file_offset),
            inode: module.inode(),
            version: image.version(),
        }
    }

    /// Whether that is what `pid` has mapped there. Looks at the file: not while the process stands still, which a file system
    /// that does not answer would prolong. Who may not look there knows the inode alone.
    pub fn is_there(&self, pid: i32, mappings: &[Mapping]) -> bool {
        let after = mappings.partition_point(|m| m.range.start <= self.text);
        let mapping = after.checked_sub(1).map(|n| &mappings[n]);
        let Some(mapping) = mapping.filter(|m| m.range.contains(&self.text)) else {
            return false;
        };
        let first_byte = mapping.range.start.wrapping_sub(mapping.offset);
        if (mapping.inode, first_byte) != (self.inode, self.first_byte) {
            return false;
        }
        let (start, end) = (mapping.range.start, mapping.range.end);
        let holder = procfs::memory_holder(pid);
        let link = format!("/proc/{holder}/map_files/{start:x}-{end:x}");
        fs::metadata(link).map_or(true, |now| Version::of(&now) == self.version)
    }
}
