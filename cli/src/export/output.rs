//! Where an export goes.
use super::ExportArgs;
use anyhow::Context;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const BUFFER_BYTES: usize = 1 << 18;

/// Written beside its place and put there when it is whole: an export that fails leaves what was
/// there before.
pub(super) enum Output {
    Stdout(BufWriter<io::Stdout>),
    File {
        out: BufWriter<File>,
        partial: Partial,
        path: PathBuf,
    },
    /// A pipe or a device; nothing can be put in its place.
    Device(BufWriter<File>),
}

/// Removed unless it is kept.
pub(super) struct Partial(Option<PathBuf>);

impl Drop for Partial {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
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
        let cannot = || format!("cannot write {}", path.display());
        if std::fs::metadata(path).is_ok_and(|m| !m.is_file()) {
            let device = File::options().write(true).open(path);
            let out = BufWriter::with_capacity(BUFFER_BYTES, device.with_context(cannot)?);
            return Ok(Output::Device(out));
        }
        let mut name = path.file_name().with_context(cannot)?.to_owned();
        name.push(format!(".partial-{}", std::process::id()));
        let partial = path.with_file_name(name);
        let file = File::create(&partial).with_context(cannot)?;
        Ok(Output::File {
            out: BufWriter::with_capacity(BUFFER_BYTES, file),
            partial: Partial(Some(partial)),
            path: path.clone(),
        })
    }

    /// The export is whole.
    pub(super) fn keep(self) -> anyhow::Result<()> {
        match self {
            Output::Stdout(mut out) => out.flush()?,
            Output::Device(mut out) => out.flush()?,
            Output::File {
                mut out,
                mut partial,
                path,
            } => {
                let cannot = || format!("cannot write {}", path.display());
                out.flush().with_context(cannot)?;
                if let Some(from) = &partial.0 {
                    std::fs::rename(from, &path).with_context(cannot)?;
                }
                partial.0 = None;
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
            Output::File { out, .. } | Output::Device(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::Stdout(out) => out.flush(),
            Output::File { out, .. } | Output::Device(out) => out.flush(),
        }
    }
}
