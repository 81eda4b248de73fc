//! The bytes of a trace file, read piece by piece: what a reader holds does not grow with the file,
//! and a file that is cut while it is read is an error (under a mapping it would be a SIGBUS).
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::Path;

pub(crate) enum Source {
    /// `len`: bytes when it was opened; a recorder may be appending still.
    File {
        file: File,
        len: u64,
    },
    Memory(Vec<u8>),
}

impl Source {
    pub(crate) fn of(path: &Path) -> io::Result<Source> {
        let mut file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.file_type().is_fifo() {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            return Ok(Source::Memory(bytes));
        }
        if !metadata.is_file() {
            return Err(io::Error::other("neither a file nor a pipe"));
        }
        let len = metadata.len();
        Ok(Source::File { file, len })
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Source::File { len, .. } => *len,
            Source::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// The bytes of `range`, which lies below [`Source::len`]; `room` holds them if it must.
    ///
    /// # Errors
    /// `read(2)` failed, or the file has become shorter.
    pub(crate) fn bytes<'a>(
        &'a self,
        range: Range<u64>,
        room: &'a mut Vec<u8>,
    ) -> io::Result<&'a [u8]> {
        match self {
            Source::File { file, .. } => {
                room.resize((range.end - range.start) as usize, 0);
                file.read_exact_at(room, range.start)?;
                Ok(room)
            }
            Source::Memory(bytes) => bytes
                .get(range.start as usize..range.end as usize)
                .ok_or_else(|| io::ErrorKind::UnexpectedEof.into()),
        }
    }
}
