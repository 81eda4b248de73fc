//! What a recorder left in one process undone.
use crate::error::{Context, Result};
use crate::output::{self, OWNER_ONLY};
use crate::status::show;
use hopscope_probe::live::found::Found;
use hopscope_probe::live::remove::{self, Extent, Origin};
use hopscope_probe::live::table::{PatchTable, State};
use hopscope_probe::live::{LiveError, clear_leftovers};
use hopscope_probe::recorder::salvage;
use hopscope_process::memory::TargetMemory;
use std::io::BufWriter;
use std::path::Path;

#[derive(Default)]
pub(super) struct How {
    pub json: bool,
    pub search_all: bool,
}

impl How {
    fn extent(&self) -> Extent {
        if self.search_all {
            Extent::All
        } else {
            Extent::Limited
        }
    }
}

/// Copies that were in use, or seemed to be, when their recording ended.
pub(super) fn take_away(pid: i32, how: &How) -> std::result::Result<(), LiveError> {
    let taken = clear_leftovers::take_away(pid, how.extent())?;
    if how.json {
        let line = serde_json::json!({
            "type": "taken_away", "schema": 1, "pid": pid, "recordings": taken.recordings,
            "bytes": taken.bytes, "pause_ns": taken.pause.as_nanos() as u64, "notes": taken.notes,
        });
        println!("{line}");
    } else {
        show!(
            "process {pid}: removed unused copies of {} recordings ({} KiB)",
            taken.recordings,
            taken.bytes >> 10
        );
        for note in &taken.notes {
            show!("  {note}");
        }
    }
    Ok(())
}

/// `added`: to the recording, while it ran.
fn save(
    table: &PatchTable,
    memory: &TargetMemory,
    (path, added): (&Path, &[&PatchTable]),
) -> Result<()> {
    let (file, mut place) = output::create(path, OWNER_ONLY)?;
    // The rings are not there for a second try.
    place.keep();
    let saved = salvage::salvage(table, added, memory, BufWriter::new(file))
        .with_context(|| format!("saving records to {}", path.display()))?;
    place.put()?;
    crate::status::say!(
        "salvaged {} records into {} ({} lost, {} torn)",
        saved.recorded,
        path.display(),
        saved.lost,
        saved.torn
    );
    if saved.damaged > 0 {
        crate::status::say!(
            "{} rings could not be read, or were overwritten by the target; their records are missing",
            saved.damaged
        );
    }
    Ok(())
}

/// Entries first, then the records (nothing writes any more), then what is mapped. True when that has
/// to stay because the process is frozen.
pub(super) fn restore(
    f: &Found,
    memory: &TargetMemory,
    (table, state): (&PatchTable, State),
    output: Option<(&Path, &[&PatchTable])>,
    how: &How,
) -> Result<bool> {
    let origin = Origin::Arena(f.inode);
    let mut detached = remove::restore_all(f.pid, memory, table, f.inode, state, origin)?;
    if let Some(output) = output {
        save(table, memory, output)?;
    }
    let reaping = remove::reap_noted(
        f.pid,
        memory,
        table,
        remove::Arena::Mapped,
        how.extent(),
        &mut detached.notes,
    );
    detached.pause = detached.pause.max(reaping.pause);
    if how.json {
        let line = serde_json::json!({
            "type": "detached", "schema": 1, "pid": f.pid,
            "functions": detached.restored, "pause_ns": detached.pause.as_nanos() as u64,
            "notes": detached.notes,
        });
        println!("{line}");
    } else {
        show!(
            "process {}: {} functions restored",
            f.pid,
            detached.restored
        );
        for note in &detached.notes {
            show!("  {note}");
        }
    }
    Ok(reaping.frozen)
}
