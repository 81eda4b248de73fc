//! Where an export goes.
use super::ExportArgs;
use crate::output::{self, Place};
use anyhow::Context;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const BUFFER_BYTES: usize = 1 << 18;

pub(super) enum Output {
    Stdout(BufWriter<io::Stdout>),
    File { out: BufWriter<File>, place: Place },
}

impl Output {
    pub(super) fn open(args: &ExportArgs) -> anyhow::Result<Output> {
        let Some(path) = &args.output else {
            if args.format.is_binary() && io::stdout().is_terminal() {
                anyhow::bail!(
                    "this format is binary and stdout is a terminal: write to a file with -o FILE, or to a pipe"
                );
            }
            return Ok(Output::Stdout(BufWriter::with_capacity(
                BUFFER_BYTES,
                io::stdout(),
            )));
        };
        if is_same_file(path, &args.file) {
            anyhow::bail!(
                "{} is the recording itself: name another file with -o",
                path.display()
            );
        }
        let (file, place) = output::create(path, args.mode)?;
        let out = BufWriter::with_capacity(BUFFER_BYTES, file);
        Ok(Output::File { out, place })
    }

    /// The export is whole.
    pub(super) fn keep(self) -> anyhow::Result<()> {
        match self {
            Output::Stdout(mut out) => out.flush()?,
            Output::File { mut out, place } => {
                out.flush().context("writing the export")?;
                place.put()?;
            }
        }
        Ok(())
    }
}

fn is_same_file(a: &Path, b: &Path) -> bool {
    match (std::fs::metadata(a), std::fs::metadata(b)) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Output::Stdout(out) => out.write(bytes),
            Output::File { out, .. } => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::Stdout(out) => out.flush(),
            Output::File { out, .. } => out.flush(),
        }
    }
}
