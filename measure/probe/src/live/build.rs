//! Copies of all selected functions, laid out in segments near the modules they come from.
use super::maps::{Mapping, find_gap};
use crate::capture::Capture;
use crate::codegen::asm::{Asm, Label, LinkError};
use crate::codegen::copy;
use crate::codegen::probe::ProbeConfig;
use crate::codegen::slow::{self, SlowConfig};
use crate::relocate::copy::{Copied, Copier};
use crate::relocate::liveness;
use crate::relocate::refusal::Refusal;
use crate::relocate::unit::{Piece, Unit};
use hopscope_event::FunctionId;
use std::ops::Range;

/// A function that was accepted, in one process.
pub struct Selected<'a> {
    pub id: FunctionId,
    pub unit: &'a Unit,
    pub pieces: Vec<Piece<'a>>,
    /// Address in the process minus address in the file.
    pub bias: u64,
    /// Where its module is mapped, data included.
    pub module: Range<u64>,
    pub captures: &'a [Capture],
}

/// Copies that lie together, with their slow path.
pub struct Segment {
    asm: Asm,
    entries: Vec<(FunctionId, u64, Copied, u64)>,
    reach: Range<u64>,
}

/// A segment with its place.
#[derive(Debug, Clone)]
pub struct Linked {
    pub at: u64,
    pub code: Vec<u8>,
    pub entries: Vec<Entry>,
}

#[derive(Debug, Clone)]
pub struct Entry {
    pub id: FunctionId,
    /// Where the jump is written.
    pub patch_at: u64,
    /// Where it goes.
    pub copy_at: u64,
    /// Instruction addresses inside the replaced bytes and where a thread that stands there goes
    /// on.
    pub moved: Vec<(u64, u64)>,
}

#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error("no free address range of {len} bytes within 2 GiB of {reach:#x?}")]
    NoGap { len: u64, reach: Range<u64> },
    #[error("generated code cannot be linked: {0}")]
    Link(#[from] LinkError),
}

/// Displacements reach 2 GiB; what is left over covers the segment itself.
const REACH: u64 = (1 << 31) - (64 << 20);
/// Modules whose span is below this share a segment.
const CLUSTER_SPAN: u64 = 1 << 30;

/// Groups the functions by module neighbourhood and emits their copies. Functions that turn out
/// not to be movable are returned with the reason.
pub fn emit(
    selected: &[Selected],
    config: &ProbeConfig,
    slow: &SlowConfig,
    pid_inside: i32,
) -> (Vec<Segment>, Vec<(FunctionId, Refusal)>) {
    let copies = selected
        .iter()
        .flat_map(|s| s.captures)
        .any(Capture::copies);
    let mut order: Vec<usize> = (0..selected.len()).collect();
    order.sort_by_key(|i| selected[*i].module.start);
    let mut refused = Vec::new();
    let mut segments: Vec<(Segment, Label, Option<Label>)> = Vec::new();
    for i in order {
        let s = &selected[i];
        let fits = segments.last().is_some_and(|(seg, ..)| {
            s.module.end.max(seg.reach.end) - seg.reach.start.min(s.module.start) <= CLUSTER_SPAN
        });
        if !fits {
            let mut asm = Asm::new();
            let entry = asm.label();
            slow::claim(&mut asm, slow, entry);
            let copy = copies.then(|| {
                let entry = asm.label();
                copy::routine(&mut asm, entry, pid_inside);
                entry
            });
            segments.push((
                Segment {
                    asm,
                    entries: Vec::new(),
                    reach: s.module.clone(),
                },
                entry,
                copy,
            ));
        }
        let (segment, slow_entry, copy) = segments.last_mut().expect("one was just pushed");
        let live = liveness::at_entry(s.pieces[0].bytes, s.unit.entry);
        let mut copier = Copier {
            asm: &mut segment.asm,
            config,
            slow: *slow_entry,
            copy: *copy,
        };
        match copier.copy(s.unit, &s.pieces, s.bias, s.id, live, s.captures) {
            Ok(copied) => {
                let patch_at = s.unit.patch_at.wrapping_add(s.bias);
                segment.entries.push((s.id, patch_at, copied, s.bias));
                segment.reach.start = segment.reach.start.min(s.module.start);
                segment.reach.end = segment.reach.end.max(s.module.end);
            }
            Err(refusal) => refused.push((s.id, refusal)),
        }
    }
    let segments = segments
        .into_iter()
        .map(|(s, ..)| s)
        .filter(|s| !s.entries.is_empty())
        .collect();
    (segments, refused)
}

impl Segment {
    pub fn len(&self) -> u64 {
        (self.asm.len() as u64).next_multiple_of(4096)
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Finds an address and resolves everything for it; the range is added to `taken`.
    pub fn place(
        &self,
        mappings: &[Mapping],
        taken: &mut Vec<Range<u64>>,
    ) -> Result<u64, BuildError> {
        let len = self.len();
        let at = find_gap(mappings, taken, len, &self.reach, REACH).ok_or_else(|| {
            BuildError::NoGap {
                len,
                reach: self.reach.clone(),
            }
        })?;
        taken.push(at..at + len);
        Ok(at)
    }

    pub fn link(&self, at: u64) -> Result<Linked, BuildError> {
        let code = self.asm.link(at)?;
        let address = |label| self.asm.address(label, at).ok_or(LinkError::Unbound);
        let mut entries = Vec::with_capacity(self.entries.len());
        for (id, patch_at, copied, bias) in &self.entries {
            let moved = (copied.moved.iter())
                .map(|(svma, label)| Ok((svma.wrapping_add(*bias), address(*label)?)))
                .collect::<Result<_, LinkError>>()?;
            entries.push(Entry {
                id: *id,
                patch_at: *patch_at,
                copy_at: address(copied.entry)?,
                moved,
            });
        }
        Ok(Linked { at, code, entries })
    }
}

impl Entry {
    /// `jmp rel32` from the entry to the copy; `None` when out of reach.
    pub fn jump(&self) -> Option<[u8; 5]> {
        let next = self.patch_at.wrapping_add(5);
        let distance = i32::try_from(self.copy_at.wrapping_sub(next) as i64).ok()?;
        let d = distance.to_le_bytes();
        Some([0xe9, d[0], d[1], d[2], d[3]])
    }
}
