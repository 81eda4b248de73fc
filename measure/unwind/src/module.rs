//! The unwind tables of one file: where they lie, and which entry covers what.
use crate::Refused;
use crate::cfi::Reader;
use crate::pointer::{self, Bytes};
use gimli::{BaseAddresses, EhFrame, EhFrameOffset, EndianSlice, LittleEndian, UnwindSection};
use object::elf::{ET_EXEC, PF_W, PT_GNU_EH_FRAME};
use object::{Architecture, FileFlags, Object, ObjectSection, ObjectSegment, SegmentFlags};
use std::collections::HashMap;
use std::collections::hash_map::Entry::{Occupied, Vacant};
use std::ops::Range;

type Cie<'d> = gimli::CommonInformationEntry<Reader<'d>>;
type Fde<'d> = gimli::FrameDescriptionEntry<Reader<'d>>;

mod part;
mod segments;

pub use part::{Common, Part};

use segments::{Terminator, behind, find};

/// Unwind tables of one module, indexed once.
#[derive(Debug)]
pub struct Module<'d> {
    bias: u64,
    /// Of `.eh_frame`.
    data: &'d [u8],
    section: EhFrame<Reader<'d>>,
    bases: BaseAddresses,
    segments: Vec<Bytes<'d>>,
    /// Absolute addresses in `.eh_frame` are what the process has there.
    absolute_is_final: bool,
    /// Disjoint, ascending.
    entries: Vec<Entry>,
}

#[derive(Debug, Clone)]
struct Entry {
    range: Range<u64>,
    /// `None`: several entries, and which of them an unwinder finds is not known.
    fde: Option<EhFrameOffset>,
}

/// A CIE of a compiler has some 30 bytes. It is read once more for each of its entries.
const MOST_OF_CIE: u32 = 1 << 10;

impl<'d> Module<'d> {
    /// `bias`: address in the process minus address in the file.
    ///
    /// An error says nothing about a single function: none of the file can be converted then.
    pub fn read(file: &object::File<'d>, bias: u64) -> Result<Module<'d>, Refused> {
        let plain = file.architecture() == Architecture::X86_64 && file.is_64();
        let (true, FileFlags::Elf { .. }, object::File::Elf64(elf)) = (plain, file.flags(), file)
        else {
            return Err(Refused::Machine);
        };
        let is_exec = elf.elf_header().e_type.get(elf.endian()) == ET_EXEC;
        let segments: Vec<Bytes> = file
            .segments()
            .filter_map(|segment| {
                let writable = match segment.flags() {
                    SegmentFlags::Elf { p_flags } => p_flags & PF_W != 0,
                    _ => true,
                };
                Some(Bytes {
                    data: segment.data().ok()?,
                    svma: segment.address(),
                    // What is only read is not relocated, and only such a file lies where it says.
                    absolute_is_final: is_exec && !writable,
                })
            })
            .collect();
        let named = file.section_by_name(".eh_frame").and_then(|section| {
            Some((section.address(), section.data().ok()?, Terminator::Inside))
        });
        let header = || {
            let headers = elf.elf_program_headers();
            let found = headers
                .iter()
                .find(|h| h.p_type.get(elf.endian()) == PT_GNU_EH_FRAME)?;
            Some(found.p_vaddr.get(elf.endian()))
        };
        let found = match named {
            Some(found) => Some(found),
            None => header().map(|at| behind(&segments, at)).transpose()?,
        };
        let (svma, data, terminator) = found.unwrap_or((0, &[], Terminator::Ends));
        let mut section = EhFrame::new(data, LittleEndian);
        section.set_address_size(8);
        let mut module = Module {
            bias,
            data,
            section,
            bases: BaseAddresses::default().set_eh_frame(svma),
            absolute_is_final: find(&segments, svma).is_some_and(|s| s.absolute_is_final),
            segments,
            entries: Vec::new(),
        };
        module.entries = disjoint(module.walk(svma, terminator)?);
        Ok(module)
    }

    /// Whether the function with these ranges can be converted: before anything is copied.
    pub fn check(&self, pieces: &[Range<u64>]) -> Result<(), Refused> {
        self.parts(pieces).map(|_| ())
    }

    /// What is covered, ascending.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> {
        self.entries.iter().map(|e| e.range.clone())
    }

    /// All that covers the function, decoded. Landing pads lie inside.
    pub(crate) fn parts(&self, pieces: &[Range<u64>]) -> Result<Vec<Part<'d>>, Refused> {
        let mut parts = Vec::new();
        for (n, piece) in pieces.iter().enumerate() {
            let first = self.entries.partition_point(|e| e.range.end <= piece.start);
            for entry in &self.entries[first..] {
                if entry.range.start >= piece.end {
                    break;
                }
                let range = entry.range.start.max(piece.start)..entry.range.end.min(piece.end);
                let svma = range.start;
                let fde = entry.fde.ok_or(Refused::Overlap { svma })?;
                parts.push(self.part(n, range, fde)?);
            }
        }
        for lsda in parts.iter().filter_map(|p| p.lsda.as_ref()) {
            for pad in lsda.call_sites.iter().filter_map(|c| c.pad) {
                if !pieces.iter().any(|p| p.contains(&pad)) {
                    return Err(Refused::LandingPadOutside { pad });
                }
            }
        }
        Ok(parts)
    }

    fn cie(&self, at: EhFrameOffset) -> gimli::Result<Cie<'d>> {
        let mut length = EndianSlice::new(self.data, LittleEndian);
        gimli::Reader::skip(&mut length, at.0)?;
        match gimli::Reader::read_u32(&mut length)? {
            0..MOST_OF_CIE => self.section.cie_from_offset(&self.bases, at),
            _ => Err(gimli::Error::OffsetOutOfBounds),
        }
    }

    /// Offsets of all entries, with their ranges.
    fn walk(&self, svma: u64, terminator: Terminator) -> Result<Vec<Entry>, Refused> {
        let mut entries = Vec::new();
        let mut cies: HashMap<usize, Cie> = HashMap::new();
        let mut rest = EndianSlice::new(self.data, LittleEndian);
        while !rest.is_empty() {
            let offset = self.data.len() - rest.len();
            let refused = |e: gimli::Error| Refused::EhFrame {
                at: svma.wrapping_add(offset as u64),
                why: e.to_string(),
            };
            let (length, _) = gimli::Reader::read_initial_length(&mut rest).map_err(refused)?;
            // Linkers put all sections of that name together, terminators included: the search table lists what lies behind, too.
            if length == 0 && matches!(terminator, Terminator::Inside) {
                continue;
            }
            if length == 0 {
                break;
            }
            let mut entry = gimli::Reader::split(&mut rest, length).map_err(refused)?;
            // A CIE, by its number of 4 bytes: also where the length has 8.
            if gimli::Reader::read_u32(&mut entry).map_err(refused)? == 0 {
                continue;
            }
            let fde = self
                .section
                .fde_from_offset(&self.bases, EhFrameOffset(offset), |_, _, at| {
                    Ok(match cies.entry(at.0) {
                        Occupied(cie) => cie.get().clone(),
                        Vacant(place) => place.insert(self.cie(at)?).clone(),
                    })
                })
                .map_err(refused)?;
            let encoding = fde.cie().fde_address_encoding().map_or(0, |e| e.0);
            pointer::check(encoding, "function", self.absolute_is_final)?;
            let start = fde.initial_address();
            let end = start
                .checked_add(fde.len())
                .ok_or_else(|| Refused::EhFrame {
                    at: svma.wrapping_add(offset as u64),
                    why: "an entry that ends behind the last address".into(),
                })?;
            if start < end {
                entries.push(Entry {
                    range: start..end,
                    fde: Some(EhFrameOffset(offset)),
                });
            }
        }
        Ok(entries)
    }
}

/// Ascending; those that overlap become one that nothing can be said about.
fn disjoint(mut entries: Vec<Entry>) -> Vec<Entry> {
    entries.sort_by_key(|e| e.range.start);
    let mut out: Vec<Entry> = Vec::with_capacity(entries.len());
    for entry in entries {
        match out.last_mut() {
            Some(last) if entry.range.start < last.range.end => {
                last.range.end = last.range.end.max(entry.range.end);
                last.fde = None;
            }
            _ => out.push(entry),
        }
    }
    out
}
