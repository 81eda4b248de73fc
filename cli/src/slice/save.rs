//! Files that packets are written to.
use crate::output;
use hopscope_event::RecordingMeta;
use hopscope_event::slice::SliceEntry;
use hopscope_read::slice_file::{Format, SliceFile};
use std::io::{self, Write};
use std::path::Path;

/// `-` is stdout.
///
/// # Errors
/// The file cannot be made or written.
pub(super) fn create(
    path: &Path,
    format: Format,
    mode: u32,
    meta: &RecordingMeta,
    entry: &SliceEntry,
) -> anyhow::Result<SliceFile> {
    let out: Box<dyn Write> = if path.as_os_str() == "-" {
        Box::new(io::stdout())
    } else {
        // Captures are looked at while they grow.
        Box::new(output::create_in_place(path, mode)?)
    };
    Ok(SliceFile::new(out, format, meta, entry)?)
}
