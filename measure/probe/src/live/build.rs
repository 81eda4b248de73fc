//! Copies of all selected functions, laid out in segments near the modules they come from.
use super::frame_tables::{self, Framed, Modules};
use super::fused::{FusedCall, Pairs, Word, Words};
use super::led_slot::LedSlot;
pub use super::selected::{Selected, Unwind};
use super::site::{self, Patch};
use crate::instrument::asm::{Asm, Label, LinkError, Zone};
use crate::instrument::body::liveness;
use crate::instrument::body::refusal::Refusal;
use crate::instrument::body::unit::Unit;
use crate::instrument::capture::Capture;
use crate::instrument::emit::body_copy::{Beside, Copier, Fused, LedLoop};
use crate::instrument::emit::checked_copy;
use crate::instrument::emit::frames::Part;
use crate::instrument::emit::probe::ProbeConfig;
use crate::instrument::emit::slow::{self, Slow, SlowConfig};
use crate::progress::{self, Phase};
use hopscope_event::FunctionId;
use hopscope_process::maps::{Mapping, find_gap_outside};
use std::collections::HashMap;
use std::ops::Range;

/// Copies that lie together, with their slow path.
pub struct Segment {
    asm: Asm,
    /// The slow path, and the room that it has at the start of the cold zone.
    slow: Slow,
    slow_bytes: usize,
    entries: Vec<Emitted>,
    reach: Range<u64>,
    /// Displacements of what all copies share: the first ones.
    shared_fixups: usize,
    /// Unwind tables, behind the code.
    tables: Vec<u8>,
    /// What copies call, in the cold zone.
    routines: Vec<Range<u32>>,
    fused: Vec<Word>,
}

struct Emitted {
    id: FunctionId,
    patch_at: u64,
    /// The entry probe.
    entry: Label,
    /// As of [`Entry`], in the file.
    moved: Vec<(u64, Label)>,
    bias: u64,
    /// Displacements of its copy, by number.
    fixups: Range<usize>,
    /// Of its pieces, and of what was inserted and lies apart.
    copies: Vec<(Zone, Range<u32>)>,
    switched: bool,
    loops: Vec<LedLoop>,
    loops_stay: bool,
    /// The original's, in the file.
    pieces: Vec<Range<u64>>,
    slots: Option<Vec<LedSlot>>,
}

/// A segment with its place.
#[derive(Debug, Clone)]
pub struct Linked {
    pub at: u64,
    pub code: Vec<u8>,
    pub entries: Vec<Entry>,
    /// Their copies are in the code too, and nothing leads there.
    pub refused: Vec<(FunctionId, Refusal)>,
    /// Address of the unwind tables (`.eh_frame_hdr`), if there are any.
    pub tables_at: Option<u64>,
    /// Where the pieces of each function that is not refused lie, and what belongs to them.
    pub copies: Vec<(FunctionId, Range<u64>)>,
    /// What they call.
    pub routines: Vec<Range<u64>>,
    /// Calls among them that share stamps, ascending.
    pub fused: Vec<FusedCall>,
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
    /// Its probes can be switched off.
    pub switched: bool,
    /// Where calls that run already are led into the copy, ascending.
    pub loops: Vec<LoopEntry>,
    /// It has loops, and none of them leads anywhere.
    pub loops_stay: bool,
    /// The original's pieces; the first one begins with its entry.
    pub pieces: Vec<Range<u64>>,
    /// Its entry stays as it is: these lead into the copy.
    pub slots: Option<Vec<LedSlot>>,
}

/// The last bytes of a loop's jump, which change.
#[derive(Debug, Clone)]
pub struct LoopEntry {
    pub at: u64,
    /// Where the jump goes then.
    pub copy_at: u64,
    /// The same jump in the copy, which leads out of it for good once the copy is to go.
    pub back: Patch,
}

#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error("no free address range of {len} bytes within 2 GiB of {reach:#x?}")]
    NoGap { len: u64, reach: Range<u64> },
    #[error("generated code cannot be linked: {0}")]
    Link(#[from] LinkError),
    #[error("unwind tables of the copies cannot be made: {0}")]
    Tables(#[from] hopscope_unwind::Refused),
}

/// Displacements reach 2 GiB; what is left over covers the segment itself.
pub(super) const REACH: u64 = (1 << 31) - (64 << 20);
/// In a program at low addresses these are what the last three or four letters of a text read as, and words that seem to
/// refer to copies keep them mapped. Between them lie control characters, and `:;<=>?@`; not at round numbers, which tables
/// of flags are full of.
const LIKE_TEXT: [Range<u64>; 3] = [
    0..0x12b5_3000,
    0x2000_0000..0x3b4d_7000,
    0x4100_0000..0x8000_0000,
];
/// Modules whose span is below this share a segment.
const CLUSTER_SPAN: u64 = 1 << 30;

/// What turned out not to be movable.
pub type EmitRefusals = Vec<(FunctionId, Refusal)>;

/// Groups the functions by module neighbourhood and emits their copies. Functions that turn out
/// not to be movable are returned with the reason. What `slow` does not know yet is for
/// [`Segment::serve`].
pub fn emit(
    selected: &[Selected],
    config: &ProbeConfig,
    slow: &SlowConfig,
    pid_inside: i32,
    fuses: bool,
) -> Result<(Vec<Segment>, EmitRefusals), BuildError> {
    let copies = selected
        .iter()
        .flat_map(|s| s.captures)
        .any(Capture::copies);
    let mut order: Vec<usize> = (0..selected.len()).collect();
    order.sort_by_key(|i| selected[*i].module.start);
    let mut refused = Vec::new();
    let claims = slow::Claims::new(slow);
    let pairs = match fuses {
        true => Pairs::find(selected),
        false => Pairs::default(),
    };
    let mut segments: Vec<(Segment, Option<Label>, Words)> = Vec::new();
    let (mut framed, mut modules) = (Vec::<Vec<Framed>>::new(), Modules::default());
    progress::begin(Phase::Copies, order.len());
    for i in order {
        progress::step(1);
        let s = &selected[i];
        let fits = segments.last().is_some_and(|(seg, ..)| {
            s.module.end.max(seg.reach.end) - seg.reach.start.min(s.module.start) <= CLUSTER_SPAN
        });
        if !fits {
            let mut asm = Asm::new();
            let slow = Slow::labels(&mut asm);
            asm.bytes(Zone::Cold, &claims.bytes);
            place_claims(&mut asm, slow, &claims);
            let end = asm.position(Zone::Cold);
            let mut routines = vec![claims.entry..claims.other, claims.other..end];
            let copy = copies.then(|| {
                let entry = asm.label();
                checked_copy::routine(&mut asm, entry, pid_inside);
                let begin = asm.offset_in(Zone::Cold, entry);
                routines.push(begin..asm.position(Zone::Cold));
                entry
            });
            segments.push((
                Segment {
                    shared_fixups: asm.fixups(),
                    asm,
                    slow,
                    slow_bytes: claims.bytes.len(),
                    entries: Vec::new(),
                    reach: s.module.clone(),
                    tables: Vec::new(),
                    routines,
                    fused: Vec::new(),
                },
                copy,
                Words::of(&pairs),
            ));
            framed.push(Vec::new());
        }
        let (segment, copy, words) = segments.last_mut().expect("one was just pushed");
        let unit = match Unit::again(&s.pieces, s.red_zone_at_entry, s.slots.is_some()) {
            Ok(unit) => unit,
            Err(refusal) => {
                refused.push((s.id, refusal));
                continue;
            }
        };
        let calls = words.calls(&mut segment.asm, i);
        let ways = words.ways(&mut segment.asm, i, selected);
        let live = liveness::at_entry(s.pieces[0].bytes, unit.entry);
        let mut copier = Copier {
            asm: &mut segment.asm,
            config,
            slow: segment.slow,
            copy: *copy,
            unwound: s.unwind.is_some_and(|u| u.must),
            tables: s.unwind.is_some(),
        };
        let first_fixup = copier.asm.fixups();
        let beside = Beside {
            captures: s.captures,
            inlined: s.inlined,
            fused: Fused {
                calls: &calls,
                ways: &ways,
            },
        };
        match copier.copy(&unit, &s.pieces, s.bias, s.id, live, beside) {
            Ok(copied) => {
                let patch_at = unit.patch_at.wrapping_add(s.bias);
                let copies = copied.parts.iter().flat_map(Part::places).collect();
                let framing = s.unwind.map(|u| {
                    let (module, function) = ((u.image, s.bias), (s.id, u.must));
                    modules.frame(module, function, copied.parts)
                });
                match framing.transpose() {
                    Ok(frame) => framed.last_mut().expect("one a segment").extend(frame),
                    Err(why) if s.unwind.is_some_and(|u| u.must) => {
                        refused.push((s.id, Refusal::UnwindTables(why)));
                        continue;
                    }
                    // As in the original: what walks the stack ends there.
                    Err(_) => {}
                }
                segment.entries.push(Emitted {
                    id: s.id,
                    patch_at,
                    entry: copied.entry,
                    moved: copied.moved,
                    bias: s.bias,
                    fixups: first_fixup..segment.asm.fixups(),
                    copies,
                    switched: copied.head.is_some(),
                    loops_stay: !s.inlined.is_empty()
                        && (copied.led.is_empty() || s.slots.is_some())
                        && unit.back_edges().next().is_some(),
                    // Nothing at all is written to a function whose entry stays.
                    loops: match s.slots {
                        Some(_) => Vec::new(),
                        None => copied.led,
                    },
                    pieces: unit.pieces.iter().map(|p| p.range.clone()).collect(),
                    slots: s.slots.map(<[LedSlot]>::to_vec),
                });
                segment.reach.start = segment.reach.start.min(s.module.start);
                segment.reach.end = segment.reach.end.max(s.module.end);
            }
            Err(refusal) => refused.push((s.id, refusal)),
        }
    }
    let segments = segments
        .into_iter()
        .zip(framed)
        .map(|((mut segment, _, words), framed)| {
            segment.fused = words.place(&mut segment.asm, selected);
            refused.extend(segment.give_tables(framed, &modules)?);
            Ok(segment)
        });
    let segments: Result<Vec<Segment>, BuildError> = segments.collect();
    let segments = segments?.into_iter().filter(|s| !s.entries.is_empty());
    Ok((segments.collect(), refused))
}

fn place_claims(asm: &mut Asm, slow: Slow, claims: &slow::Claims) {
    let labels = [(slow.entry, claims.entry), (slow.other, claims.other)];
    asm.overwrite(Zone::Cold, 0, &claims.bytes, &labels);
}

impl Segment {
    /// The slow path with what is known since the copies were emitted.
    pub fn serve(&mut self, config: &SlowConfig) {
        let claims = slow::Claims::new(config);
        assert_eq!(
            claims.bytes.len(),
            self.slow_bytes,
            "unwind tables name places in it"
        );
        place_claims(&mut self.asm, self.slow, &claims);
    }

    /// Tables for copies whose module has some. Functions that must have them and cannot are refused.
    fn give_tables(
        &mut self,
        framed: Vec<Framed>,
        modules: &Modules,
    ) -> Result<Vec<(FunctionId, Refusal)>, BuildError> {
        let at = self.tables_at();
        let made = frame_tables::make(&self.asm, framed, modules, &self.routines, at)?;
        self.entries
            .retain(|e| made.refused.iter().all(|(id, _)| *id != e.id));
        self.tables = made.bytes;
        Ok(made.refused)
    }

    /// Offset of the tables.
    fn tables_at(&self) -> u64 {
        (self.asm.len() as u64).next_multiple_of(64)
    }

    pub fn len(&self) -> u64 {
        (self.tables_at() + self.tables.len() as u64).next_multiple_of(4096)
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
        let at = find_gap_outside(&LIKE_TEXT, mappings, taken, len, &self.reach, REACH);
        let at = at.ok_or_else(|| BuildError::NoGap {
            len,
            reach: self.reach.clone(),
        })?;
        taken.push(at..at + len);
        Ok(at)
    }

    /// A function whose copy cannot be linked there is refused, and the others are not.
    ///
    /// # Errors
    /// When what they share cannot be linked.
    pub fn link(&self, at: u64) -> Result<Linked, BuildError> {
        let (mut code, failed) = self.asm.link_each(at);
        let tables_at = (!self.tables.is_empty()).then(|| at + self.tables_at());
        if tables_at.is_some() {
            code.resize(self.tables_at() as usize, 0xcc);
            code.extend_from_slice(&self.tables);
        }
        let address = |label| self.asm.address(label, at).ok_or(LinkError::Unbound);
        let cold = |offset| self.asm.address_of(Zone::Cold, offset, at);
        let of_routine = |code: &Range<u32>| cold(code.start)..cold(code.end);
        let mut linked = Linked {
            at,
            code,
            entries: Vec::with_capacity(self.entries.len()),
            refused: Vec::new(),
            tables_at,
            copies: Vec::new(),
            routines: self.routines.iter().map(of_routine).collect(),
            fused: Vec::new(),
        };
        if let Some((_, why)) = failed.iter().find(|(n, _)| *n < self.shared_fixups) {
            return Err(why.clone().into());
        }
        for emitted in &self.entries {
            // What belongs to none of them is of a copy that was given up midway.
            let first = failed.partition_point(|(n, _)| *n < emitted.fixups.start);
            let own = failed.get(first).filter(|(n, _)| *n < emitted.fixups.end);
            let mut why = own.map(|(_, why)| why.clone());
            let in_process = |svma: u64| svma.wrapping_add(emitted.bias);
            let moved = (emitted.moved.iter())
                .map(|(svma, label)| Ok((in_process(*svma), address(*label)?)))
                .collect::<Result<_, LinkError>>()?;
            let pieces = emitted.pieces.iter();
            let entry = Entry {
                id: emitted.id,
                patch_at: emitted.patch_at,
                copy_at: address(emitted.entry)?,
                moved,
                switched: emitted.switched,
                loops: self.loops(emitted, &linked.code, at),
                loops_stay: emitted.loops_stay,
                pieces: pieces
                    .map(|p| in_process(p.start)..in_process(p.end))
                    .collect(),
                slots: emitted.slots.clone(),
            };
            let is_jumped_from = entry.slots.is_none();
            if why.is_none() && is_jumped_from && entry.jump().is_none() {
                let target = entry.copy_at;
                why = Some(LinkError::OutOfRange { target });
            }
            match why {
                Some(why) => linked.refused.push((emitted.id, Refusal::NotLinked(why))),
                None => {
                    linked.entries.push(entry);
                    let place = |zone, offset| self.asm.address_of(zone, offset, at);
                    let copies = emitted.copies.iter();
                    let copies = copies.map(|(zone, r)| place(*zone, r.start)..place(*zone, r.end));
                    linked
                        .copies
                        .extend(copies.map(|range| (emitted.id, range)));
                }
            }
        }
        let sites = linked.entries.iter().filter(|e| e.slots.is_none());
        let sites: HashMap<FunctionId, u64> = sites.map(|e| (e.id, e.patch_at)).collect();
        let site = |id| sites.get(&id).copied();
        let fused = self.fused.iter();
        linked.fused = fused
            .filter_map(|w| w.linked(&self.asm, at, site))
            .collect();
        Ok(linked)
    }

    pub fn fused_count(&self) -> usize {
        self.fused.len()
    }

    pub fn loops_count(&self) -> usize {
        self.entries.iter().map(|e| e.loops.len()).sum()
    }

    /// Without those that are out of reach.
    fn loops(&self, emitted: &Emitted, code: &[u8], at: u64) -> Vec<LoopEntry> {
        let entry = |led: &LedLoop| {
            let (zone, offset) = led.field;
            let field = self.asm.address_of(zone, offset, at);
            let original: [u8; 5] = *code.get((field - at) as usize..)?.first_chunk()?;
            let target = led.edge.target.wrapping_add(emitted.bias);
            Some(LoopEntry {
                at: led.edge.field?.wrapping_add(emitted.bias),
                copy_at: self.asm.address(led.begin, at)?,
                back: Patch {
                    at: field,
                    original,
                    replaced: site::jump(original[0], field, target)?,
                },
            })
        };
        emitted.loops.iter().filter_map(entry).collect()
    }

    /// Its functions, in case there is no place for it.
    pub fn functions(&self) -> impl Iterator<Item = FunctionId> {
        self.entries.iter().map(|e| e.id)
    }
}

impl Entry {
    /// Where it is led into its copy: where the jump is, or where slots leave off leading to.
    pub fn led_at(&self) -> u64 {
        match self.slots {
            Some(_) => self.pieces[0].start,
            None => self.patch_at,
        }
    }

    /// `jmp rel32` from the entry to the copy; `None` when out of reach.
    pub fn jump(&self) -> Option<[u8; 5]> {
        site::jump(0xe9, self.patch_at, self.copy_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::body::inlined::Crossings;
    use crate::instrument::body::unit::Piece;
    use crate::instrument::emit::probe::Stores;
    use hopscope_event::layout::Context;

    const HERE: u64 = 0x5555_0000_0000;
    const FAR: u64 = 0x7fff_0000_0000;
    /// inc rdi; inc rdi; ret
    const PLAIN: &[u8] = &[0x48, 0xff, 0xc7, 0x48, 0xff, 0xc7, 0xc3];
    /// mov rax, [rip]; ret
    const REFERRING: &[u8] = &[0x48, 0x8b, 0x05, 0, 0, 0, 0, 0xc3];
    /// inc rdi; inc rdi; jmp +2; jmp rsp; ret: given up with a label that is nowhere yet
    const GIVEN_UP: &[u8] = &[
        0x48, 0xff, 0xc7, 0x48, 0xff, 0xc7, 0xeb, 2, 0xff, 0xe4, 0xc3,
    ];

    #[test]
    fn a_function_that_cannot_be_linked_refuses_itself_alone() {
        let all = [
            (PLAIN, HERE),
            (REFERRING, FAR),
            (GIVEN_UP, HERE),
            (PLAIN, FAR),
            (REFERRING, HERE),
        ];
        let none = Crossings::default();
        let selected = all.iter().enumerate().map(|(n, (bytes, bias))| Selected {
            id: FunctionId(n as u32),
            red_zone_at_entry: false,
            pieces: vec![Piece {
                svma: 0x1000,
                bytes,
            }],
            bias: *bias,
            module: HERE..HERE + 0x10000,
            load: None,
            lands: false,
            captures: &[],
            inlined: &none,
            slots: None,
            unwind: None,
        });
        let config = ProbeConfig {
            ring_records_log2: 16,
            bmi2: true,
            stores: Stores::Records,
            switchable: false,
            ordered_stamps: false,
        };
        let slow = SlowConfig {
            contexts_at: HERE,
            contexts: 4096 / size_of::<Context>() as u32,
            pool_at: HERE,
            ring_records_log2: 16,
            tid_at_fs: None,
            follow_forks: false,
        };
        let selected: Vec<_> = selected.collect();
        let (segments, refused) = emit(&selected, &config, &slow, 1, true).unwrap();
        let ids = |refused: &[(FunctionId, Refusal)]| {
            let ids = refused.iter().map(|(id, why)| (id.0, why.class()));
            ids.collect::<Vec<_>>()
        };
        assert_eq!(ids(&refused), [(2, "unsupported-instruction")]);
        let linked = segments[0].link(HERE + 0x20000).unwrap();
        let measured: Vec<u32> = linked.entries.iter().map(|e| e.id.0).collect();
        assert_eq!(measured, [0, 4]);
        assert_eq!(ids(&linked.refused), [(1, "not-linked"), (3, "not-linked")]);
    }
}
