//! The unwinder's look-up of a process: led through slots that say where copies lie and where their unwind tables are
//! (`instrument::emit::lookup`). One arena of its own serves all recordings of a process, and stays as long as any
//! copies do: it has a patch table like theirs, state restored from the beginning, so that whoever takes copies away
//! takes it away with the last of them.
use super::asked::Asked;
use super::build::{self, BuildError, Entry, Linked};
use super::error::LiveError;
use super::place;
use super::site::Patch;
use super::slots;
use super::standing;
use super::table::{Area, PatchTable, State};
use crate::instrument::asm::{LinkError, Zone};
use crate::instrument::emit::lookup;
use hopscope_event::FunctionId;
use hopscope_event::layout::PAGE;
use hopscope_process::maps::{Mapping, find_gap};
use hopscope_process::memory::TargetMemory;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// An arena that is to be mapped.
pub(super) struct Prepared {
    pub table: PatchTable,
    pub header: Vec<u8>,
    code: Vec<Vec<u8>>,
    pub linked: Vec<Linked>,
}

/// How the unwinders of a process are to be answered.
pub(super) enum Lookup {
    /// By what an earlier recording has left for copies that stay.
    There(Box<PatchTable>),
    New(Box<Prepared>),
}

impl Lookup {
    pub(super) fn table(&self) -> &PatchTable {
        match self {
            Lookup::There(table) => table,
            Lookup::New(prepared) => &prepared.table,
        }
    }
}

/// Nothing is touched yet. `like`: who records; `taken`: what is to be mapped before.
pub(super) fn prepare(
    pid: i32,
    memory: &TargetMemory,
    asked: &[Asked],
    like: &PatchTable,
    mappings: &[Mapping],
    mut taken: Vec<Range<u64>>,
) -> Result<Lookup, LiveError> {
    let refused = |why: String| LiveError::Lookup { pid, why };
    let mut wanted = Vec::new();
    for one in asked {
        wanted.push(one.patch_at().map_err(refused)?);
    }
    let serves = |table: &PatchTable| {
        table.patches.iter().all(|p| is_patched(memory, p))
            && wanted
                .iter()
                .all(|at| table.patches.iter().any(|p| p.at == *at))
    };
    if let Some(table) = slots::in_process(pid, memory).into_iter().find(serves) {
        return Ok(Lookup::There(Box::new(table)));
    }
    let mut table = bare(like);
    let no_gap = |reach: Range<u64>| BuildError::NoGap {
        len: PAGE as u64,
        reach,
    };
    let mut place = |len: u64, reach: &Range<u64>, limit: u64| {
        let at =
            find_gap(mappings, &taken, len, reach, limit).ok_or_else(|| no_gap(reach.clone()))?;
        taken.push(at..at + len);
        Ok::<Area, LiveError>(Area { at, len })
    };
    let anywhere = place::near_libraries(mappings);
    table.contexts = place(PAGE as u64, &anywhere, 1 << 46)?;
    let (mut code, mut linked) = (Vec::new(), Vec::new());
    for (one, at) in asked.iter().zip(wanted) {
        let answer = one.emit(table.contexts.at).map_err(refused)?;
        let asm = &answer.code;
        let segment = place(
            (asm.len() as u64).next_multiple_of(PAGE as u64),
            &one.module,
            build::REACH,
        )?;
        let bytes = asm.link(segment.at).map_err(BuildError::from)?;
        let entry_at = asm
            .address(answer.entry, segment.at)
            .ok_or(LinkError::Unbound)
            .map_err(BuildError::from)?;
        let moved = answer.moved.iter().map(|(svma, offset)| {
            (
                svma.wrapping_add(one.bias),
                asm.address_of(Zone::Hot, *offset, segment.at),
            )
        });
        let entry = Entry {
            id: FunctionId(u32::MAX),
            patch_at: at,
            copy_at: entry_at,
            moved: moved.collect(),
            switched: false,
            loops: Vec::new(),
            loops_stay: false,
            pieces: Vec::new(),
            slots: None,
        };
        let replaced = entry
            .jump()
            .ok_or(LinkError::OutOfRange { target: entry_at });
        let replaced = replaced.map_err(BuildError::from)?;
        table.patches.push(Patch {
            at,
            original: bytes_there(pid, memory, one, at)?,
            replaced,
        });
        table.segments.push(segment);
        code.push(bytes);
        linked.push(Linked {
            at: segment.at,
            code: Vec::new(),
            entries: vec![entry],
            refused: Vec::new(),
            tables_at: None,
            copies: Vec::new(),
            routines: Vec::new(),
            fused: Vec::new(),
        });
    }
    table.patches.sort_by_key(|p| p.at);
    table.check()?;
    let room = table.to_bytes(State::Restored).len() + PAGE;
    table.header = place(room.next_multiple_of(PAGE) as u64, &anywhere, 1 << 46)?;
    Ok(Lookup::New(Box::new(Prepared {
        header: table.to_bytes(State::Restored),
        table,
        code,
        linked,
    })))
}

/// Whoever took copies away with it saw no use of it before this recording's were added: it did so in a stop, which is
/// over once this one is.
pub(super) fn still_there(
    pid: i32,
    memory: &TargetMemory,
    table: &PatchTable,
) -> Result<(), LiveError> {
    super::remove::finish_call(pid)?;
    match table.patches.iter().all(|p| is_patched(memory, p)) {
        true => Ok(()),
        false => Err(LiveError::Lookup {
            pid,
            why: "another hopscope has just taken away what an earlier recording had; try again"
                .to_owned(),
        }),
    }
}

fn is_patched(memory: &TargetMemory, patch: &Patch) -> bool {
    let mut now = [0; 5];
    memory.read(patch.at, &mut now).is_ok() && now == patch.replaced
}

/// The bytes that are replaced, if they are those of the file.
fn bytes_there(
    pid: i32,
    memory: &TargetMemory,
    asked: &Asked,
    at: u64,
) -> Result<[u8; 5], LiveError> {
    let svma = at.wrapping_sub(asked.bias);
    let file = asked.image.bytes(svma..svma + 5).unwrap_or_default();
    let mut now = [0; 5];
    let read = memory.read(at, &mut now);
    read.map_err(LiveError::io(pid, "reading its code"))?;
    match now == file {
        true => Ok(now),
        false => Err(LiveError::CodeDiffers { pid, at }),
    }
}

/// A table of this recorder for an arena without rings.
fn bare(like: &PatchTable) -> PatchTable {
    let mut table = PatchTable::new(
        like.meta.clone(),
        like.process.clone(),
        Vec::new(),
        Vec::new(),
    );
    table.answers_unwinders = true;
    // Copies that need it are searched for together with it.
    table.switches_stacks = like.switches_stacks;
    table
}

impl Prepared {
    /// Fills what has been mapped.
    pub(super) fn fill(
        &self,
        pid: i32,
        memory: &TargetMemory,
        arena: &File,
    ) -> Result<(), LiveError> {
        let mut offset = self.table.header.len;
        for ((segment, code), linked) in
            self.table.segments.iter().zip(&self.code).zip(&self.linked)
        {
            let written = arena.write_all_at(code, offset);
            written.map_err(LiveError::io(pid, "writing what answers unwinders"))?;
            standing::arrived(pid, memory, linked.at, code)?;
            offset += segment.len;
        }
        let at = self.table.contexts.at;
        let name_at = (at + lookup::NAME_AT).to_le_bytes();
        let words: [(u64, &[u8]); 2] = [
            // l_name, behind l_addr
            (at + lookup::LINK_MAP_AT + 8, &name_at),
            (at + lookup::NAME_AT, b"hopscope\0"),
        ];
        let mut words = words.into_iter();
        words
            .try_for_each(|(at, bytes)| memory.write(at, bytes))
            .map_err(LiveError::io(pid, "writing what answers unwinders"))
    }
}
