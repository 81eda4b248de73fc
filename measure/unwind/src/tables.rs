//! The tables of one segment: collected function by function, laid out at the end.
use crate::lsda::{self, Table};
use crate::module::{Common, Part};
use crate::piece::{self, FARTHEST};
use crate::routine::{self, Routine};
use crate::rows::Writer;
use crate::{Module, Piece, Refused, apart, bytes, expression, pointer};
use std::collections::HashMap;
use std::ops::Range;

/// Unwind tables of one segment.
#[derive(Debug, Default)]
pub struct Tables {
    /// Each with its length field, at these offsets from the first.
    cies: Vec<u8>,
    known: HashMap<(Common, Vec<u8>), u64>,
    entries: Vec<Entry>,
    /// Of `entries`.
    entry_bytes: u64,
    lsda_bytes: u64,
}

#[derive(Debug)]
struct Entry {
    cie: u64,
    copy: Range<u64>,
    instructions: Vec<u8>,
    lsda: Option<Table>,
}

/// Version and three encodings, then the way to `.eh_frame` and the number of rows.
const HEADER: u64 = 12;
const ROW: u64 = 8;
const TERMINATOR: u64 = 4;

impl Entry {
    /// Length, way to the CIE, begin and length of the copy, length of the augmentation, way to the LSDA.
    fn fixed(&self) -> u64 {
        16 + 1 + if self.lsda.is_some() { 4 } else { 0 }
    }

    fn size(&self) -> u64 {
        (self.fixed() + self.instructions.len() as u64).next_multiple_of(8)
    }
}

impl Tables {
    pub fn new() -> Tables {
        Tables::default()
    }

    /// All pieces of one function. Nothing is added when it is refused.
    pub fn add(&mut self, module: &Module, pieces: &[Piece]) -> Result<(), Refused> {
        piece::check(pieces)?;
        let originals: Vec<Range<u64>> = pieces.iter().map(|p| p.original.clone()).collect();
        let mut made = Vec::new();
        for part in module.parts(&originals)? {
            made.extend(convert(&part, pieces)?);
        }
        for (common, initial, entry) in made {
            self.push(common, initial, entry);
        }
        Ok(())
    }

    /// What copies call.
    pub fn add_routine(&mut self, routine: &Routine) -> Result<(), Refused> {
        let (common, initial) = routine::common();
        let entry = Entry {
            cie: 0,
            copy: routine.code.clone(),
            instructions: routine.instructions()?,
            lsda: None,
        };
        self.push(common, initial, entry);
        Ok(())
    }

    fn push(&mut self, common: Common, initial: Vec<u8>, mut entry: Entry) {
        entry.cie = self.cie(common, initial);
        self.entry_bytes += entry.size();
        self.lsda_bytes += entry.lsda.as_ref().map_or(0, |l| l.bytes.len() as u64);
        self.entries.push(entry);
    }

    /// Bytes that [`finish`](Tables::finish) gives.
    pub fn len(&self) -> usize {
        (self.lsda_at() + self.lsda_bytes) as usize
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes to be placed at offset `at` of the segment, a multiple of 8: `.eh_frame_hdr`, `.eh_frame` with its terminator, LSDAs. They do not
    /// depend on the segment's base: what is inside the segment is relative, what is outside absolute.
    pub fn finish(mut self, at: u64) -> Result<Vec<u8>, Refused> {
        let len = self.len();
        if !at.is_multiple_of(8) || at > FARTHEST || len as u64 > FARTHEST {
            return Err(Refused::Place);
        }
        self.entries.sort_by_key(|e| e.copy.start);
        piece::disjoint(self.entries.iter().map(|e| e.copy.clone()).collect())?;
        let mut out = Vec::with_capacity(len);
        let eh_frame = self.eh_frame_at();
        out.extend([
            1,
            pointer::PCREL_SDATA4,
            pointer::UDATA4,
            pointer::DATAREL_SDATA4,
        ]);
        out.extend(way(4, eh_frame).to_le_bytes());
        out.extend((self.entries.len() as u32).to_le_bytes());
        let mut entry_at = eh_frame + self.cies.len() as u64;
        for entry in &self.entries {
            out.extend(way(at, entry.copy.start).to_le_bytes());
            out.extend(way(0, entry_at).to_le_bytes());
            entry_at += entry.size();
        }
        out.resize(eh_frame as usize, 0);
        out.extend(&self.cies);
        let mut lsda_at = self.lsda_at();
        for entry in &self.entries {
            self.write_entry(&mut out, entry, at, lsda_at);
            lsda_at += entry.lsda.as_ref().map_or(0, |l| l.bytes.len() as u64);
        }
        out.extend([0; TERMINATOR as usize]);
        for table in self.entries.into_iter().filter_map(|e| e.lsda) {
            let field = out.len() + lsda::BASE_FIELD;
            out.extend(table.bytes);
            if let Some(base) = table.base {
                let way = way(at + field as u64, base);
                out[field..field + 4].copy_from_slice(&way.to_le_bytes());
            }
        }
        debug_assert_eq!(out.len(), len);
        Ok(out)
    }

    fn write_entry(&self, out: &mut Vec<u8>, entry: &Entry, at: u64, lsda_at: u64) {
        let (begin, size) = (out.len(), entry.size());
        out.extend((size as u32 - 4).to_le_bytes());
        let cie = self.eh_frame_at() + entry.cie;
        out.extend(((out.len() as u64 - cie) as u32).to_le_bytes());
        out.extend(way(at + out.len() as u64, entry.copy.start).to_le_bytes());
        out.extend(((entry.copy.end - entry.copy.start) as u32).to_le_bytes());
        match entry.lsda {
            Some(_) => {
                out.push(4);
                out.extend(way(out.len() as u64, lsda_at).to_le_bytes());
            }
            None => out.push(0),
        }
        out.extend(&entry.instructions);
        // DW_CFA_nop.
        out.resize(begin + size as usize, 0);
    }

    fn eh_frame_at(&self) -> u64 {
        (HEADER + ROW * self.entries.len() as u64).next_multiple_of(8)
    }

    fn lsda_at(&self) -> u64 {
        self.eh_frame_at() + self.cies.len() as u64 + self.entry_bytes + TERMINATOR
    }

    /// Offset of a CIE like that, in `.eh_frame`.
    fn cie(&mut self, common: Common, initial: Vec<u8>) -> u64 {
        let key = (common, initial);
        if let Some(at) = self.known.get(&key) {
            return *at;
        }
        let (common, initial) = &key;
        let mut augmentation = vec![b'z'];
        let mut data = Vec::new();
        if let Some((encoding, address)) = common.personality {
            augmentation.push(b'P');
            data.push(encoding);
            data.extend(address.to_le_bytes());
        }
        if common.has_lsda {
            augmentation.push(b'L');
            data.push(pointer::PCREL_SDATA4);
        }
        augmentation.push(b'R');
        data.push(pointer::PCREL_SDATA4);
        if common.is_signal_frame {
            augmentation.push(b'S');
        }
        // No CIE's number; version 1.
        let mut out = vec![0, 0, 0, 0, 1];
        out.extend(augmentation);
        out.push(0);
        // Places count bytes.
        bytes::uleb128(&mut out, 1);
        bytes::sleb128(&mut out, common.data_align);
        out.push(expression::RIP as u8);
        bytes::uleb128(&mut out, data.len() as u64);
        out.extend(data);
        out.extend(initial);
        out.resize((out.len() + 4).next_multiple_of(8) - 4, 0);
        let at = self.cies.len() as u64;
        self.cies.extend((out.len() as u32).to_le_bytes());
        self.cies.extend(out);
        self.known.insert(key, at);
        at
    }
}

/// Relative, in the four bytes that FARTHEST leaves room for.
fn way(from: u64, to: u64) -> i32 {
    (to as i64 - from as i64) as i32
}

type Converted = (Common, Vec<u8>, Entry);

/// The copy's own entry, and those of code apart from it.
fn convert(part: &Part, pieces: &[Piece]) -> Result<Vec<Converted>, Refused> {
    let piece = &pieces[part.piece];
    let copy = piece.begin(part.range.start)?..piece.end(part.range.end)?;
    if copy.is_empty() {
        return Err(Refused::Pieces("nothing stands for a part of it"));
    }
    let mut writer = Writer::new(part.common.data_align);
    let initial = writer.initial(&part.initial)?;
    let instructions = writer.entry(&part.program, &part.range, &copy, piece)?;
    let lsda = part.lsda.as_ref();
    let lsda = lsda
        .map(|l| lsda::write(l, &copy, piece, pieces))
        .transpose()?;
    let own = (copy, instructions, lsda);
    let all = [own].into_iter().chain(apart::entries(part, pieces)?);
    let all = all.map(|(copy, instructions, lsda)| {
        let entry = Entry {
            cie: 0,
            copy,
            instructions,
            lsda,
        };
        (part.common.clone(), initial.clone(), entry)
    });
    Ok(all.collect())
}
