//! Names and unwind tables of the copies of one process, for debuggers and profilers: to them a copy is code that no file
//! has, so that they name neither it nor what called it.
use super::build::Linked;
use super::place::Places;
use hopscope_event::{FunctionEntry, FunctionId};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

mod elf;

/// Copies that lie together.
#[derive(Debug, Clone)]
pub(super) struct Copies {
    /// Where they are mapped, and where in the arena they lie.
    at: u64,
    len: u64,
    offset: u64,
    /// Of their unwind tables.
    tables_at: Option<u64>,
    pieces: Vec<(FunctionId, Range<u64>)>,
    /// What probes call.
    routines: Vec<Range<u64>>,
}

/// Of `routines`, whatever they do.
const ROUTINE: &str = "hopscope_probe";

impl Copies {
    pub(super) fn of(linked: Vec<Linked>, places: &Places) -> Vec<Copies> {
        let mut offset = places.header.len;
        let all = linked.into_iter().zip(&places.segments);
        let copies = all.map(|(linked, area)| {
            let at_offset = offset;
            offset += area.len;
            Copies {
                at: area.at,
                len: area.len,
                offset: at_offset,
                tables_at: linked.tables_at,
                pieces: linked.copies,
                routines: linked.routines,
            }
        });
        copies.collect()
    }
}

/// Writes an ELF file that shows copies as they are mapped, at the offsets that they have in the arena. `functions` names them.
///
/// # Errors
/// When the file cannot be written, or the arena cannot be read.
pub(super) fn write(
    all: &[Copies],
    functions: &[FunctionEntry],
    arena: &File,
    out: &File,
) -> io::Result<()> {
    let mut image = elf::Image::default();
    let mut end = 0;
    for copies in all {
        let code_end = copies.tables_at.unwrap_or(copies.at + copies.len);
        image.segment(elf::Segment {
            code: copies.at..code_end,
            end: copies.at + copies.len,
            offset: copies.offset,
        });
        for (id, range) in &copies.pieces {
            let function = functions.get(id.0 as usize).filter(|f| f.id == *id);
            image.symbol(function.map_or("", |f| &f.name), range.clone());
        }
        for range in &copies.routines {
            image.symbol(ROUTINE, range.clone());
        }
        end = copies.offset + copies.len;
        copy(arena, out, copies.offset..end)?;
        if let Some(at) = copies.tables_at {
            let mut tables = vec![0; (copies.at + copies.len - at) as usize];
            arena.read_exact_at(&mut tables, copies.offset + (at - copies.at))?;
            image.tables(at, &tables).map_err(io::Error::other)?;
        }
    }
    let (head, tail) = image.finish(end);
    out.write_all_at(&head, 0)?;
    out.write_all_at(&tail, end)
}

fn copy(from: &File, to: &File, range: Range<u64>) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 20];
    let mut at = range.start;
    while at < range.end {
        let len = buffer.len().min((range.end - at) as usize);
        from.read_exact_at(&mut buffer[..len], at)?;
        to.write_all_at(&buffer[..len], at)?;
        at += len as u64;
    }
    Ok(())
}
