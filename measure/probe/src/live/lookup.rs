//! The unwinder's look-up of a process: led through slots that say where copies lie and where their unwind tables are
//! (`instrument::emit::lookup`). One arena of its own serves all recordings of a process, and stays as long as any
//! copies do: it has a patch table like theirs, state restored from the beginning, so that whoever takes copies away
//! takes it away with the last of them.
use super::build::{self, BuildError, Entry, Linked};
use super::error::LiveError;
use super::found;
use super::install;
use super::patch;
use super::place;
use super::switch::{Batch, SwitchedOn};
use super::table::{Area, Patch, PatchTable, State};
use crate::instrument::asm::{Asm, Label, LinkError, Zone};
use crate::instrument::body::unit::{Insn, JUMP_BYTES, Op, Piece, Unit};
use crate::instrument::body::unwinders::{self, FIND_OBJECT};
use crate::instrument::emit::head;
use crate::instrument::emit::lookup::{self, Slot};
use crate::locate::Image;
use hopscope_event::FunctionId;
use hopscope_event::layout::PAGE;
use hopscope_process::maps::{Mapping, find_gap};
use hopscope_process::memory::TargetMemory;
use iced_x86::{Decoder, DecoderOptions, OpKind, Register};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

/// A function that unwinders ask.
#[derive(Clone)]
pub struct Asked {
    image: Arc<Image>,
    range: Range<u64>,
    bias: u64,
    /// Where its module is mapped.
    module: Range<u64>,
}

/// The functions of `images` that every unwinder of their process asks: a module and the function's range in its file.
///
/// # Errors
/// Why unwinders cannot be given the tables of copies there, in words.
pub fn sites(images: &[&Image]) -> Result<Vec<(usize, Range<u64>)>, String> {
    let sites = unwinders::asked(images)?.into_iter().map(|(m, n)| {
        let function = &images[m].functions()[n];
        let range = function.svma..function.svma + function.size;
        let (unit, piece) = decoded(images[m], &range)?;
        head_of(&unit, &piece).map(|_| (m, range.clone()))
    });
    sites.collect()
}

fn decoded<'a>(image: &'a Image, range: &Range<u64>) -> Result<(Unit, Piece<'a>), String> {
    let bytes = image.bytes(range.clone()).unwrap_or_default();
    let piece = Piece {
        svma: range.start,
        bytes,
    };
    let unit = Unit::again(std::slice::from_ref(&piece), false).map_err(|why| why.to_string())?;
    let window = unit.patch_at + 1..unit.patch_at + JUMP_BYTES;
    match image.branch_targets().any_in(window) {
        true => Err(format!("something jumps into the entry of {FIND_OBJECT}")),
        false => Ok((unit, piece)),
    }
}

/// The instructions under the jump.
fn head_of<'u>(unit: &'u Unit, piece: &Piece) -> Result<&'u [Insn], String> {
    // Through a pointer of an object (`_rtld_global_ro`), not through a table of the function's own.
    let leaves = |insn: &Insn| {
        let at = (insn.svma - piece.svma) as usize;
        let jump = Decoder::new(64, &piece.bytes[at..], DecoderOptions::NONE).decode();
        jump.op0_kind() == OpKind::Memory && jump.memory_index() == Register::None
    };
    let mut computed = unit.insns().filter(|insn| insn.op == Op::IndirectJump);
    let head = unit.head_unless_computed().filter(|_| computed.all(leaves));
    let head = head.filter(|head| {
        head.iter()
            .all(|i| matches!(i.op, Op::Plain | Op::RipRelative { .. }))
    });
    head.ok_or_else(|| format!("the first instructions of {FIND_OBJECT} cannot be moved"))
}

impl Asked {
    /// `range`: of the function in its file, `module`: where the file is mapped, `bias` above its own addresses.
    pub fn new(image: Arc<Image>, range: Range<u64>, bias: u64, module: Range<u64>) -> Asked {
        Asked {
            image,
            range,
            bias,
            module,
        }
    }

    fn unit(&self) -> Result<(Unit, Piece<'_>), String> {
        decoded(&self.image, &self.range)
    }

    fn patch_at(&self) -> Result<u64, String> {
        Ok(self.unit()?.0.patch_at.wrapping_add(self.bias))
    }

    /// What answers in its place, but for the address of the slots, which does not change its length.
    fn emit(&self, slots_at: u64) -> Result<(Asm, Label, Vec<(u64, u32)>), String> {
        let (unit, piece) = self.unit()?;
        let first = head_of(&unit, &piece)?;
        let mut asm = Asm::new();
        let entry = asm.label();
        asm.bind(Zone::Hot, entry);
        asm.bytes(Zone::Hot, &lookup::find_object(slots_at));
        let map = head::original(&mut asm, Zone::Hot, first, (&piece, self.bias));
        Ok((asm, entry, map))
    }
}

/// An arena that is to be mapped.
pub(super) struct Prepared {
    pub table: PatchTable,
    pub header: Vec<u8>,
    code: Vec<Vec<u8>>,
    linked: Vec<Linked>,
}

/// How the unwinders of a process are to be answered.
pub(super) enum Lookup {
    /// By what an earlier recording has left for copies that stay.
    There(PatchTable),
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

/// Those in `pid`, in use or not.
pub(super) fn in_process(pid: i32, memory: &TargetMemory) -> Vec<PatchTable> {
    let found = found::in_process(pid).into_iter();
    let tables = found.filter_map(|f| {
        let (table, _) = f.table_at_most(memory, TABLE_BYTES_AT_MOST).ok()?;
        (table.answers_unwinders && f.belongs(&table)).then_some(table)
    });
    tables.collect()
}

/// Of JSON, with a few entries.
const TABLE_BYTES_AT_MOST: u64 = 64 << 10;

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
        let patched = |p: &Patch| {
            let mut now = [0; 5];
            memory.read(p.at, &mut now).is_ok() && now == p.replaced
        };
        table.patches.iter().all(patched)
            && wanted
                .iter()
                .all(|at| table.patches.iter().any(|p| p.at == *at))
    };
    if let Some(table) = in_process(pid, memory).into_iter().find(serves) {
        return Ok(Lookup::There(table));
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
        let (asm, entry, map) = one.emit(table.contexts.at).map_err(refused)?;
        let segment = place(
            (asm.len() as u64).next_multiple_of(PAGE as u64),
            &one.module,
            build::REACH,
        )?;
        let bytes = asm.link(segment.at).map_err(BuildError::from)?;
        let entry_at = asm
            .address(entry, segment.at)
            .ok_or(LinkError::Unbound)
            .map_err(BuildError::from)?;
        let moved = map.iter().map(|(svma, offset)| {
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
        };
        let replaced = entry
            .jump()
            .ok_or(LinkError::OutOfRange { target: entry_at });
        let replaced = replaced.map_err(BuildError::from)?;
        table.patches.push(Patch {
            at,
            original: standing(pid, memory, one, at)?,
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

/// The bytes that are replaced, if they are those of the file.
fn standing(pid: i32, memory: &TargetMemory, asked: &Asked, at: u64) -> Result<[u8; 5], LiveError> {
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
            install::arrived(pid, memory, linked.at, code)?;
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

    /// Leads the entries there. Where a thread stands amid the bytes, or a stack refers to them, once more.
    pub(super) fn switch_on(&self, pid: i32, batch: &Batch) -> Result<(), LiveError> {
        const ATTEMPTS: usize = 5;
        let batch = Batch {
            linked: &self.linked,
            contexts: 0,
            rings: 0,
            ..*batch
        };
        let mut left = self.table.clone();
        let mut why = String::new();
        for _ in 0..ATTEMPTS {
            let tried = left.patches.clone();
            let mut on = SwitchedOn::default();
            let pause = batch.switch_part_on(pid, &mut left, None, &mut on)?;
            let done = std::mem::take(&mut left.patches);
            left.patches = tried.into_iter().filter(|p| !done.contains(p)).collect();
            if left.patches.is_empty() {
                return Ok(());
            }
            why = on
                .refused
                .into_iter()
                .map(|(_, why)| why)
                .next()
                .unwrap_or_default();
            patch::let_run(pause.max(MOMENT));
        }
        Err(LiveError::Lookup { pid, why })
    }
}

const MOMENT: Duration = Duration::from_millis(1);

/// Where copies of the recording that begins lie, and their tables. Before anything leads there.
pub(super) fn add(
    pid: i32,
    memory: &TargetMemory,
    table: &PatchTable,
    copies: &[(Area, u64)],
) -> Result<(), LiveError> {
    let failed = |e| LiveError::io(pid, "writing where copies have their unwind tables")(e);
    let page = Page::read(memory, table).map_err(failed)?;
    let mut count = page.count;
    let mut free = (0..lookup::SLOTS).filter(|n| page.slots[*n].len == 0);
    for (area, tables) in copies {
        let n = free.next().ok_or_else(|| LiveError::Lookup {
            pid,
            why: format!(
                "{} recordings have left copies with unwind tables",
                lookup::SLOTS
            ),
        })?;
        let at = table.contexts.at + lookup::slot_at(n);
        // The length last: until then it is empty.
        let words = [(0, area.at), (16, *tables), (8, area.len)];
        for (offset, word) in words {
            memory
                .write(at + offset, &word.to_le_bytes())
                .map_err(failed)?;
        }
        count = count.max(n as u64 + 1);
        memory
            .write(table.contexts.at, &count.to_le_bytes())
            .map_err(failed)?;
    }
    Ok(())
}

/// Copies in `gone` go: nobody asks for them any more. True when none is left that somebody may ask for. All threads
/// stand still.
pub(super) fn release(
    memory: &TargetMemory,
    table: &PatchTable,
    gone: &[Area],
) -> io::Result<bool> {
    let page = Page::read(memory, table)?;
    let mut unused = true;
    for (n, slot) in page.slots.iter().enumerate().filter(|(_, s)| s.len > 0) {
        match gone.iter().any(|area| area.contains(slot.start)) {
            true => memory.write(table.contexts.at + lookup::slot_at(n) + 8, &[0; 8])?,
            false => unused = false,
        }
    }
    Ok(unused)
}

/// Whether copies other than those of `tables` are answered for.
pub(super) fn serves_others(
    memory: &TargetMemory,
    lookup: &PatchTable,
    tables: &[&PatchTable],
) -> bool {
    let known = |start| {
        tables
            .iter()
            .flat_map(|t| &t.segments)
            .any(|s| s.contains(start))
    };
    let page = Page::read(memory, lookup);
    page.is_ok_and(|page| page.slots.iter().any(|s| s.len > 0 && !known(s.start)))
}

/// As the process has it, which may have written anything there.
struct Page {
    count: u64,
    slots: Vec<Slot>,
}

impl Page {
    fn read(memory: &TargetMemory, table: &PatchTable) -> io::Result<Page> {
        let mut bytes = [0; PAGE];
        memory.read(table.contexts.at, &mut bytes)?;
        let word = |at: u64| {
            u64::from_le_bytes(
                bytes[at as usize..at as usize + 8]
                    .try_into()
                    .expect("8 bytes"),
            )
        };
        let slots = (0..lookup::SLOTS).map(lookup::slot_at).map(|at| Slot {
            start: word(at),
            len: word(at + 8),
            tables: word(at + 16),
            unused: 0,
        });
        Ok(Page {
            count: word(0).min(lookup::SLOTS as u64),
            slots: slots.collect(),
        })
    }
}
