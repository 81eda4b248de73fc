//! What the kernel unpacks as its first file system: a cpio archive, written here so that devices
//! need no root and no file is copied twice. Layout: Documentation/driver-api/early-userspace/
//! buffer-format.rst, "newc": numbers are eight hexadecimal digits, all aligned to four bytes.
use crate::error::{Error, Result};
use std::collections::BTreeSet;
use std::path::Path;

const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const CHARACTER_DEVICE: u32 = 0o020_600;

#[derive(Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    names: BTreeSet<String>,
}

impl Archive {
    /// `name` is absolute; directories above it are made. A name that is there already stays.
    pub(crate) fn file(&mut self, name: &str, content: &[u8]) {
        self.entry(name, PROGRAM, (0, 0), content);
    }

    pub(crate) fn copy(&mut self, from: &Path, name: &str) -> Result<()> {
        let content = std::fs::read(from).map_err(Error::file("read", from))?;
        self.file(name, &content);
        Ok(())
    }

    pub(crate) fn directory(&mut self, name: &str) {
        self.entry(name, DIRECTORY, (0, 0), &[]);
    }

    pub(crate) fn character_device(&mut self, name: &str, major: u32, minor: u32) {
        self.entry(name, CHARACTER_DEVICE, (major, minor), &[]);
    }

    pub(crate) fn holds(&self, name: &str) -> bool {
        self.names.contains(name.trim_start_matches('/'))
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.header("TRAILER!!!", 0, (0, 0), 0);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        let name = name.trim_start_matches('/');
        if let Some((above, _)) = name.rsplit_once('/')
            && !self.names.contains(above)
        {
            self.directory(&format!("/{above}"));
        }
        if !self.names.insert(name.to_owned()) {
            return;
        }
        self.header(name, mode, device, content.len());
        self.bytes.extend_from_slice(content);
        self.align();
    }

    fn header(&mut self, name: &str, mode: u32, device: (u32, u32), size: usize) {
        let inode = self.names.len() as u32;
        let fields = [
            inode,
            mode,
            0, // user
            0, // group
            1, // links
            0, // time
            size as u32,
            0, // device that the file lies on
            0,
            device.0,
            device.1,
            name.len() as u32 + 1,
            0, // checksum: none in this kind
        ];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes
                .extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.align();
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}
