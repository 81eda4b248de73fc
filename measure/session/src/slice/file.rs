//! Files that packets are written to, one after the other where they are cut.
use super::rotation::Rotation;
use crate::error::Result;
use crate::output;
use hopscope_event::clock::read::clock_sync;
use hopscope_event::slice::SliceEntry;
use hopscope_event::{ClockSync, RecordingMeta, Summary};
use hopscope_read::slice_file::{Format, SliceFile};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What is to be written.
#[derive(Debug, Clone)]
pub struct FilePlan {
    /// `-` is stdout.
    pub path: PathBuf,
    pub format: Format,
    /// Permissions of new files.
    pub mode: u32,
    /// `-C`: millions of bytes of each file.
    pub cut_at: Option<u64>,
    /// `-W`: how many files there are at most.
    pub files: Option<u32>,
}

/// `-` is stdout.
///
/// # Errors
/// The file cannot be made or written.
pub fn create(
    path: &Path,
    format: Format,
    mode: u32,
    meta: &RecordingMeta,
    entry: &SliceEntry,
) -> Result<SliceFile> {
    let out: Box<dyn Write> = if path.as_os_str() == "-" {
        Box::new(io::stdout())
    } else {
        // Captures are looked at while they grow.
        Box::new(output::create_in_place(path, mode)?)
    };
    Ok(SliceFile::new(out, format, meta, entry)?)
}

pub(super) struct Files {
    plan: FilePlan,
    rotation: Option<Rotation>,
    /// Of the file that is written.
    path: PathBuf,
}

impl Files {
    /// With the first of them.
    pub(super) fn begin(
        plan: FilePlan,
        meta: &RecordingMeta,
        entry: &SliceEntry,
    ) -> Result<(Files, SliceFile)> {
        let cut = |millions| Rotation::new(&plan.path, millions, plan.files);
        let rotation = plan.cut_at.map(cut);
        let first = rotation.as_ref().map(Rotation::path);
        let path = first.unwrap_or_else(|| plan.path.clone());
        let file = create(&path, plan.format, plan.mode, meta, entry)?;
        let files = Files {
            plan,
            rotation,
            path,
        };
        Ok((files, file))
    }

    pub(super) fn is_stdout(&self) -> bool {
        self.plan.path.as_os_str() == "-"
    }

    pub(super) fn path(&self) -> Option<&Path> {
        (!self.is_stdout()).then_some(&*self.path)
    }

    /// Ends a full file and begins the next, which is a recording of its own.
    pub(super) fn rotate(
        &mut self,
        file: &mut SliceFile,
        meta: &RecordingMeta,
        entry: &SliceEntry,
        clock: Option<&ClockSync>,
    ) -> Result<()> {
        let Some(rotation) = &mut self.rotation else {
            return Ok(());
        };
        file.flush()?;
        if !rotation.is_full(file.bytes()) {
            return Ok(());
        }
        rotation.step();
        let path = rotation.path();
        let mut next = create(&path, self.plan.format, self.plan.mode, meta, entry)?;
        self.path = path;
        if let Some(clock) = clock {
            next.clock(*clock)?;
        }
        let full = std::mem::replace(file, next);
        let whole = Summary::ended(
            clock_sync(),
            "the file was full and continues in the next one",
        );
        Ok(full.finish(None, Some(&whole))?)
    }

    /// Of a file that could not be written on: how many of `given` packets are in it.
    pub(super) fn incomplete(&self, given: u64) -> Option<String> {
        let path = self.path()?;
        let shown = path.display();
        let there = hopscope_read::open(path).map(|opened| {
            let heads = opened.reader.slice_heads();
            heads.map(|head| u64::from(head.rows)).sum::<u64>()
        });
        Some(match there {
            Ok(there) => format!("{shown} is incomplete, {there} of {given} packets are in it"),
            Err(_) => format!("{shown} is incomplete"),
        })
    }
}
