//! What the tests of whole files share: a file in memory, a made-up copy of a function, two readers of tables.
pub mod compare;
pub mod copied;
pub mod copy;
pub mod originals;
pub mod outside;
pub mod personality;
pub mod rows;

use object::{Object, ObjectSegment};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the copies' segment would lie in the process; nothing in the tables depends on it.
pub const SEGMENT: u64 = 0x7000_0000_0000;
/// Of the file in the process.
pub const BIAS: u64 = 0x1000_0000;

/// Bytes at addresses of the file.
pub struct Memory<'d>(Vec<(u64, &'d [u8])>);

impl<'d> Memory<'d> {
    pub fn of_file(file: &object::File<'d>) -> Memory<'d> {
        let segments = file.segments();
        Memory(segments.map(|s| (s.address(), s.data().unwrap())).collect())
    }

    pub fn of(address: u64, bytes: &'d [u8]) -> Memory<'d> {
        Memory(vec![(address, bytes)])
    }

    pub fn at(&self, address: u64) -> Option<&'d [u8]> {
        self.0.iter().find_map(|(start, data)| {
            let at = usize::try_from(address.checked_sub(*start)?).ok()?;
            data.get(at..).filter(|rest| !rest.is_empty())
        })
    }
}

/// A program of `tests/programs`, compiled.
pub fn compile(compiler: &str, source: &str, name: &str, flags: &[&str]) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let out = dir.join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(source);
    let status = Command::new(compiler)
        .args(flags)
        .arg("-o")
        .args([&out, &source])
        .status();
    assert!(status.unwrap().success(), "{compiler} {flags:?}");
    out
}
