//! Writing, for the copy.
use super::{CallSite, Lsda};
use crate::{Landing, Piece, Refused, bytes, pointer};
use std::ops::Range;

/// A table, of which only its place is missing.
#[derive(Debug)]
pub struct Table {
    pub bytes: Vec<u8>,
    /// Where the base of the landing pads lies, as an offset from the segment's base; it is the field at [`BASE_FIELD`], relative to itself.
    pub base: Option<u64>,
}

pub const BASE_FIELD: usize = 1;

/// `copy`: what the new unwind entry covers. Landing pads may lie in any of `pieces`.
pub fn write(
    lsda: &Lsda,
    copy: &Range<u64>,
    piece: &Piece,
    pieces: &[Piece],
) -> Result<Table, Refused> {
    let mut sites = Vec::with_capacity(lsda.call_sites.len());
    for site in &lsda.call_sites {
        let end = piece.end(site.range.end)?;
        let mut at = piece.begin(site.range.start)?;
        let pad = site.pad.map(|pad| landing_pad(pad, pieces)).transpose()?;
        if pad.is_some() {
            let before = |l: &Landing| l.call.start < site.range.start;
            let own = &piece.landings[piece.landings.partition_point(before)..];
            for one in own.iter().take_while(|l| l.call.end <= site.range.end) {
                let call = piece.begin(one.call.start)?..piece.end(one.call.end)?;
                sites.push((at..call.start, pad, site.action));
                at = call.end;
                sites.push((call, Some(one.at), site.action));
            }
        }
        sites.push((at..end, pad, site.action));
    }
    table(lsda, copy, &sites)
}

/// The same for code apart: `sites` are those of instructions that it stands for.
pub fn apart(
    lsda: &Lsda,
    copy: &Range<u64>,
    apart: &[(Range<u64>, &CallSite)],
    pieces: &[Piece],
) -> Result<Table, Refused> {
    let mut sites = Vec::with_capacity(apart.len());
    for (range, site) in apart {
        let pad = site.pad.map(|pad| landing_pad(pad, pieces)).transpose()?;
        sites.push((range.clone(), pad, site.action));
    }
    if sites.is_empty() {
        // No landing pads' base, no types; an empty list of call sites.
        let bytes = vec![pointer::OMIT, pointer::OMIT, pointer::ULEB128, 0];
        return Ok(Table { bytes, base: None });
    }
    table(lsda, copy, &sites)
}

/// Ranges, their landing pads and actions.
type Sites = [(Range<u64>, Option<u64>, u64)];

fn table(lsda: &Lsda, copy: &Range<u64>, sites: &Sites) -> Result<Table, Refused> {
    // An offset of zero would mean that there is no landing pad.
    let first = sites.iter().filter_map(|s| s.1).min();
    let base = first
        .filter(|pad| *pad <= copy.start)
        .map(|pad| pad.checked_sub(1));
    let base = match base {
        Some(None) => return Err(Refused::Pieces("a landing pad at the segment's begin")),
        Some(base) => base,
        None => None,
    };
    let mut out = Vec::new();
    match base {
        Some(_) => out.extend([pointer::PCREL_SDATA4, 0, 0, 0, 0]),
        None => out.push(pointer::OMIT),
    }
    let from = base.unwrap_or(copy.start);
    let mut table = Vec::new();
    for (range, pad, action) in sites.iter().filter(|s| !s.0.is_empty()) {
        bytes::uleb128(&mut table, range.start - copy.start);
        bytes::uleb128(&mut table, range.end - range.start);
        bytes::uleb128(&mut table, pad.map_or(0, |pad| pad - from));
        bytes::uleb128(&mut table, *action);
    }
    let mut behind_types_offset = vec![pointer::ULEB128];
    bytes::uleb128(&mut behind_types_offset, table.len() as u64);
    behind_types_offset.extend(table);
    behind_types_offset.extend(lsda.actions);
    match &lsda.types {
        None => {
            out.push(pointer::OMIT);
            out.extend(behind_types_offset);
        }
        Some(types) => {
            let indirect = if types.indirect { pointer::INDIRECT } else { 0 };
            out.push(pointer::ABSOLUTE | indirect);
            let size = behind_types_offset.len() + 8 * types.values.len();
            bytes::uleb128(&mut out, size as u64);
            out.extend(behind_types_offset);
            for value in types.values.iter().rev() {
                out.extend(value.to_le_bytes());
            }
            out.extend(types.filters);
        }
    }
    Ok(Table { bytes: out, base })
}

fn landing_pad(pad: u64, pieces: &[Piece]) -> Result<u64, Refused> {
    let piece = pieces.iter().find(|p| p.original.contains(&pad));
    let piece = piece.ok_or(Refused::LandingPadOutside { pad })?;
    piece
        .instruction(pad)
        .ok_or(Refused::Location { svma: pad })
}
