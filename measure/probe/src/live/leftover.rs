//! Copies that earlier recordings had to leave in a process, because something seemed to refer to
//! them. Their number is bounded: each detach looks again, and too many of them refuse an attach.
use super::found;
use super::table::{PatchTable, State};
use hopscope_process::memory::TargetMemory;

/// More copies than this may not wait in one process for being unused, besides those of its largest recording.
pub const AT_MOST: u64 = 64 << 20;

/// Of a retired table's JSON: it names no functions. A process that says otherwise may have mapped
/// thousands of them.
const RETIRED_BYTES_AT_MOST: u64 = 1 << 20;

pub(super) struct Leftover {
    pub table: PatchTable,
}

/// Retired copies, but for those whose table lies at `except`. Whatever else a killed recorder left is
/// for `detach`: there may be records to save. What cannot be read is noted: it stays.
pub(super) fn of(
    pid: i32,
    memory: &TargetMemory,
    except: Option<u64>,
    notes: &mut Vec<String>,
) -> Vec<Leftover> {
    let found = found::in_process(pid).into_iter();
    let found = found.filter_map(|f| Some((f.header?.at, f)));
    let mut left = Vec::new();
    for (at, f) in found.filter(|(at, _)| except != Some(*at)) {
        let read = match f.state(memory) {
            Ok(State::Restored) => f.table_at_most(memory, RETIRED_BYTES_AT_MOST),
            Ok(_) => Ok(None),
            Err(e) => Err(e),
        };
        // What names thousands of functions is not retired.
        match read.transpose() {
            None => {}
            Some(Ok((table, _))) if table.answers_unwinders && found::is_of_another(&table) => {}
            Some(Ok((table, state))) if is_retired(&table, state) && f.belongs(&table) => {
                left.push(Leftover { table });
            }
            Some(Ok(_)) => {}
            Some(Err(e)) => notes.push(format!(
                "process {pid}: what an earlier recording left at {at:#x} stays mapped, its table cannot be read: {e}"
            )),
        }
    }
    left
}

/// Whether the copies need nothing any more, but stay.
pub fn is_retired(table: &PatchTable, state: State) -> bool {
    state == State::Restored && table.pool.len == 0
}

pub(super) fn code_bytes(table: &PatchTable) -> u64 {
    table.segments.iter().map(|s| s.len).sum()
}

impl Leftover {
    /// Not what answers for them.
    pub(super) fn is_copies(&self) -> bool {
        !self.table.answers_unwinders
    }
}

pub(super) fn copies(left: &[Leftover]) -> usize {
    left.iter().filter(|l| l.is_copies()).count()
}

/// Of one recording.
pub(super) fn largest(left: &[Leftover]) -> u64 {
    let copies = left.iter().filter(|l| l.is_copies());
    copies.map(|l| code_bytes(&l.table)).max().unwrap_or(0)
}

pub(super) fn bytes(left: &[Leftover]) -> u64 {
    let copies = left.iter().filter(|l| l.is_copies());
    copies.map(|l| code_bytes(&l.table)).sum()
}

/// Notes what is still mapped.
pub(super) fn note(pid: i32, left: &[Leftover], notes: &mut Vec<String>) {
    if copies(left) > 0 {
        notes.push(format!(
            "process {pid}: copies of {} earlier recordings, or of what was added while recording, stay mapped, unused ({} KiB; at most {} MiB besides the largest)",
            copies(left),
            bytes(left) >> 10,
            AT_MOST >> 20
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::table::tests::table;
    use crate::live::table::{ARENA_NAME, Area};
    use crate::memory::SharedWords;
    use hopscope_process::procfs;
    use nix::sys::memfd::{MFdFlags, memfd_create};
    use std::fs::File;
    use std::os::unix::fs::FileExt;
    use std::process::{Child, Command};

    struct Ended(Child);

    impl Drop for Ended {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// The process that has it is this test itself. What answers unwinders lies there unused while its recorder attaches.
    #[test]
    fn what_nobody_needs_any_more_is_found() {
        // Whoever holds an arena may be a recorder: this one lives on in a child.
        let memfd = File::from(memfd_create(ARENA_NAME, MFdFlags::empty()).unwrap());
        memfd.set_len(4096).unwrap();
        let words = SharedWords::map(&memfd, 4096).unwrap();
        let at = words.words().as_ptr() as u64;
        let pid = std::process::id() as i32;
        let memory = TargetMemory::open(pid).unwrap();
        // Other tests of this process map arenas, too.
        let looked = |except| {
            let mut notes = Vec::new();
            let mut left = of(pid, &memory, except, &mut notes);
            left.retain(|l| l.table.header.at == at);
            notes.retain(|n| n.contains(&format!("{at:#x}")));
            (left.len(), notes.len())
        };
        assert_eq!((looked(None), looked(Some(at))), ((0, 1), (0, 0)));
        let recorder = Command::new("sleep").arg("1000").spawn().unwrap();
        let mut recorder = Ended(recorder);
        let recorder = &mut recorder.0;
        let header = Area { at, len: 4096 };
        let mut answers = PatchTable {
            answers_unwinders: true,
            recorder: recorder.id() as i32,
            recorder_started: procfs::start_time(recorder.id() as i32).unwrap(),
            header,
            pool: Area { at: 0, len: 0 },
            ..table()
        };
        let found = |answers: &PatchTable| {
            let bytes = answers.to_bytes(State::Restored);
            assert_eq!(bytes.len(), 4096);
            memfd.write_all_at(&bytes, 0).unwrap();
            let (found, noted) = looked(None);
            assert_eq!(noted, 0);
            found
        };
        let of_another = found(&answers);
        let started = std::mem::replace(&mut answers.recorder_started, 1);
        let of_an_earlier_process = found(&answers);
        answers.recorder_started = started;
        recorder.kill().unwrap();
        recorder.wait().unwrap();
        assert_eq!(
            (of_another, of_an_earlier_process, found(&answers)),
            (0, 1, 1)
        );
    }
}
