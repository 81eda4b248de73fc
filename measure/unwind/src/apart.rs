//! Entries for code that was inserted into a function and lies apart from its copy: a thread in it is as it is at one
//! instruction of the original, but for what was pushed.
use crate::lsda::{self, Table};
use crate::module::Part;
use crate::piece::Aside;
use crate::rows::Writer;
use crate::{Piece, Refused};
use std::ops::Range;

/// What one entry covers, with its instructions and its exception table.
pub type Made = (Range<u64>, Vec<u8>, Option<Table>);

/// Of all asides of `part`: those that lie together share an entry.
pub fn entries(part: &Part, pieces: &[Piece]) -> Result<Vec<Made>, Refused> {
    let piece = &pieces[part.piece];
    let behind = part.range.end == piece.original.end;
    let of_part = |a: &&Aside| part.range.contains(&a.svma) || (behind && a.svma == part.range.end);
    let mut made = Vec::new();
    let own: Vec<&Aside> = piece.asides.iter().filter(of_part).collect();
    for together in own.chunk_by(|a, b| a.copy.end == b.copy.start) {
        made.push(entry(part, together, pieces)?);
    }
    Ok(made)
}

fn entry(part: &Part, asides: &[&Aside], pieces: &[Piece]) -> Result<Made, Refused> {
    let (first, last) = (asides[0], asides[asides.len() - 1]);
    let copy = first.copy.start..last.copy.end;
    let mut writer = Writer::new(part.common.data_align);
    writer.initial(&part.initial)?;
    let instructions = writer.apart(&part.program, asides)?;
    let table = part.lsda.as_ref().map(|lsda| {
        let sites = asides.iter().filter_map(|a| {
            // Behind the last instruction it is as at that one.
            let svma = a.svma.min(part.range.end - 1);
            lsda.site(svma).map(|site| (a.copy.clone(), site))
        });
        lsda::apart(lsda, &copy, &sites.collect::<Vec<_>>(), pieces)
    });
    Ok((copy, instructions, table.transpose()?))
}
