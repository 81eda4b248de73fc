//! Emits the copy of a unit: every instruction verbatim but for the fields that depend on where it
//! lies, probes at the entry and before every exit.
//!
//! References to the unit's own labels as *data* keep the original address; direct jumps go to
//! the copy; a call to itself goes to the original entry, so that recursion is measured.
use super::branches::Sizes;
use crate::instrument::asm::{Asm, Label, Zone};
use crate::instrument::body::back_edges::{BackEdge, FIELD_BYTES};
use crate::instrument::body::inlined::{Crossings, calls};
use crate::instrument::body::push;
use crate::instrument::body::refusal::Refusal;
use crate::instrument::body::unit::{Insn, JUMP_BYTES, Op, Piece, Unit};
use crate::instrument::capture::Capture;
use crate::instrument::emit::capture::{self, Captured};
use crate::instrument::emit::dispatch::{self, Translated, Ways};
use crate::instrument::emit::follow::Code;
use crate::instrument::emit::frames::{Aside, Inserted, Part};
use crate::instrument::emit::head;
use crate::instrument::emit::inlined;
use crate::instrument::emit::probe::{self, Live, ProbeConfig, Site, Stores};
use crate::instrument::emit::slow::Slow;
use hopscope_event::CapturePlace;
use hopscope_event::record::{FunctionId, RecordKind};
use std::collections::HashMap;
use std::ops::Range;

mod calls;
mod fused;
mod ways_in;

pub use fused::Fused;
pub use ways_in::LedLoop;

/// What a copy is made with.
pub struct Copier<'a> {
    pub asm: &'a mut Asm,
    pub config: &'a ProbeConfig,
    pub slow: Slow,
    /// Reads memory that may not be there; there when a capture needs it.
    pub copy: Option<Label>,
    /// The function's frame may be unwound: where its probes are off, nothing is called that could land in the copy.
    pub unwound: bool,
    /// Its copy gets unwind tables, which are to be right at each instruction.
    pub tables: bool,
}

/// What is recorded of a function beside its calls.
#[derive(Clone, Copy)]
pub struct Beside<'a> {
    pub captures: &'a [Capture],
    pub inlined: &'a Crossings,
    pub fused: Fused<'a>,
}

/// Captures of one function, by place.
#[derive(Default)]
struct Captures {
    entry: Vec<Capture>,
    exit: Vec<Capture>,
    /// Those of `exit` that there are at tail exits, too.
    counters: Vec<Capture>,
    body: Vec<Capture>,
}

impl Captures {
    fn sorted(all: &[Capture], config: &ProbeConfig) -> Captures {
        let mut sorted = Captures::default();
        // Probes that store nothing take nothing along.
        for capture in all.iter().filter(|_| config.stores == Stores::Records) {
            match capture.entry.at {
                CapturePlace::Entry => sorted.entry.push(capture.clone()),
                CapturePlace::Body => sorted.body.push(capture.clone()),
                CapturePlace::Return => sorted.exit.push(capture.clone()),
            }
        }
        let at_exit = sorted.exit.iter().filter(|c| c.is_counter());
        sorted.counters = at_exit.cloned().collect();
        sorted
    }

    /// What the instruction at `svma` has loaded.
    fn loaded_at(
        &self,
        svma: u64,
    ) -> impl Iterator<Item = (&Capture, crate::instrument::capture::Reg)> {
        self.body.iter().flat_map(move |capture| {
            let here = capture.loads.iter().filter(move |load| load.0 == svma);
            here.map(move |load| (capture, load.1))
        })
    }
}

/// Where things are in the copy.
#[derive(Debug)]
pub struct Copied {
    /// Entry probe: the jump's target.
    pub entry: Label,
    /// Instructions inside the replaced bytes and their copies: where a thread that stands there
    /// goes on.
    pub moved: Vec<(u64, Label)>,
    /// Every instruction and the offset of its copy (diagnostics, differential test).
    pub map: Vec<(u64, Zone, u32)>,
    /// The same of the instructions from which calls with their probes off go on in the original
    /// body, and the end of the last; `None`: the function's probes cannot be switched off.
    pub head: Option<Vec<(u64, u32)>>,
    /// What unwind tables are made from, piece by piece.
    pub parts: Vec<Part>,
    /// Loops that lead calls which run already into the copy.
    pub led: Vec<LedLoop>,
}

struct Body<'a> {
    unit: &'a Unit,
    pieces: &'a [Piece<'a>],
    bias: u64,
    function: FunctionId,
    starts: HashMap<u64, Label>,
    captures: Captures,
    inlined: &'a Crossings,
    fused: Fused<'a>,
    /// Jumps of loops that lead into the copy, by their addresses.
    edges: HashMap<u64, BackEdge>,
}

/// A way out of line that a branch takes: to an address out of the unit, or to an instruction of it past probes.
struct Leaving {
    label: Label,
    /// Of the instruction that branches, or behind the last.
    from: u64,
    /// Who branches.
    branch: u64,
    target: u64,
}

/// What a copy has besides its instructions, while it is emitted.
#[derive(Default)]
struct Added {
    /// What translates computed jumps: one for all, or one for each where unwind tables are to tell them apart, and where it
    /// may lead into inlined functions, or out of them (the jump's own address).
    dispatchers: Vec<(Label, Option<u64>)>,
    /// Where instructions begin behind what was inserted before them, which is for who comes from the one before.
    landings: Vec<(u64, u32)>,
    /// Of the piece that is emitted.
    inserted: Vec<Inserted>,
    /// Into the copy, behind the entry's probe.
    ways: Vec<Range<u32>>,
    /// The last bytes of jumps that lead into the copy.
    fields: Vec<(BackEdge, (Zone, u32))>,
}

impl Copier<'_> {
    /// Copies `unit`, which a process has mapped at `bias` above its file addresses.
    pub fn copy(
        &mut self,
        unit: &Unit,
        pieces: &[Piece],
        bias: u64,
        function: FunctionId,
        live_at_entry: Live,
        beside: Beside,
    ) -> Result<Copied, Refusal> {
        let Beside {
            captures,
            inlined,
            fused,
        } = beside;
        let mut starts = HashMap::new();
        for insn in unit.insns() {
            if let Op::Jump { target } | Op::JumpIf { target, .. } | Op::ShortOnly { target } =
                insn.op
                && unit.contains(target)
            {
                starts.entry(target).or_insert_with(|| self.asm.label());
            }
        }
        for (_, pad) in inlined.landings() {
            starts.entry(*pad).or_insert_with(|| self.asm.label());
        }
        let computed = unit.insns().filter(|insn| insn.op == Op::IndirectJump);
        for target in computed.flat_map(|insn| inlined.targets_from(insn.svma)) {
            starts.entry(target).or_insert_with(|| self.asm.label());
        }
        let leads = !inlined.is_empty() && !inlined.stays;
        let leads = leads && !self.config.switchable && self.config.stores == Stores::Records;
        let edges = unit
            .back_edges()
            .filter(|edge| leads && edge.field.is_some());
        let edges = edges.map(|edge| (edge.jump, edge)).collect();
        let mut moved = Vec::new();
        for insn in &unit.pieces[0].insns {
            if insn.svma > unit.patch_at && insn.svma < unit.patch_at + JUMP_BYTES {
                let label = *starts.entry(insn.svma).or_insert_with(|| self.asm.label());
                moved.push((insn.svma, label));
            }
        }
        let body = Body {
            unit,
            pieces,
            bias,
            function,
            starts,
            captures: Captures::sorted(captures, self.config),
            inlined,
            fused,
            edges,
        };

        let (mut map, mut off_head, mut off_end) = (Vec::new(), None, 0);
        let (mut ranges, mut parts, mut tables) = (Vec::new(), Vec::new(), Vec::new());
        let (mut added, mut inserted) = (Added::default(), Vec::new());
        let first_reference = self.asm.fixups();
        let entry = self.asm.label();
        for (i, piece) in unit.pieces.iter().enumerate() {
            let zone = if i == 0 { Zone::Hot } else { Zone::Cold };
            let copy_base = self.asm.label();
            self.asm.bind(zone, copy_base);
            // Distance 0 means "nothing starts here" in translation tables.
            self.asm.bytes(zone, &[0xcc]);
            self.asm.align(zone, 16, 0xcc);
            let begin = self.asm.position(zone);
            if i == 0 {
                self.asm.bind(zone, entry);
                let site = Site {
                    function,
                    kind: RecordKind::Entry,
                    live: live_at_entry,
                    red_zone: unit.red_zone_at_entry,
                    position: probe::RSP,
                };
                let head = unit.head().filter(|head| {
                    let unwound =
                        || self.unwound && head.iter().any(|insn| calls(insn, &pieces[0]));
                    self.config.switchable && !unwound()
                });
                match (body.captures.entry.is_empty(), head) {
                    (true, Some(head)) => {
                        probe::switched(self.asm, self.config, self.slow, site);
                        let from = (&body.pieces[0], body.bias);
                        off_head = Some(head::original(self.asm, Zone::Stub, head, from));
                        off_end = self.asm.position(Zone::Stub);
                    }
                    (true, None) => {
                        probe::probe(self.asm, zone, self.config, self.slow, site);
                        self.ways_in(site, fused.ways, &mut added);
                    }
                    (false, _) => self.entry_capturing(zone, site, &body.captures.entry),
                }
                self.crossing(&body, zone, None, Some(unit.entry));
            }
            let before = map.len();
            added.insert(zone, begin..self.asm.position(zone), piece.range.start);
            for way in std::mem::take(&mut added.ways) {
                added.insert(Zone::Cold, way, unit.entry);
            }
            let end = self.piece(&body, i, zone, &mut map, &mut added)?;
            parts.push(Part {
                original: piece.range.clone(),
                zone,
                copy: begin..end,
                map: map[before..].iter().map(|m| (m.0, m.2)).collect(),
                pushed: Vec::new(),
                asides: Vec::new(),
                landings: Vec::new(),
            });
            inserted.push(std::mem::take(&mut added.inserted));
            if unit.has_indirect_jump {
                let copied_from = self.asm.offset_in(zone, copy_base);
                let mut table = vec![0u32; (piece.range.end - piece.range.start) as usize];
                for (svma, offset) in added.landings.drain(..) {
                    table[(svma - piece.range.start) as usize] = offset - copied_from;
                }
                let at = self.asm.label();
                self.asm.bind(Zone::Table, at);
                self.asm.words(Zone::Table, &table);
                let original = self.asm.label_at(piece.range.start.wrapping_add(bias));
                ranges.push(Translated {
                    original,
                    bytes: table.len() as u32,
                    table: at,
                    copy_base,
                });
                tables.push((zone, copied_from, table));
            }
        }
        self.exceptions(&body, &mut parts, &mut inserted);
        let led = self.running_loops(&body, &added.fields, &mut inserted);
        for (label, jump) in &added.dispatchers {
            let own = jump.map(|jump| self.computed(&body, jump, &tables, &ranges, &mut inserted));
            let ranges = own.as_deref().unwrap_or(&ranges);
            let leaving = jump.map_or(&[][..], |jump| inlined.on(Some(jump), None));
            let (config, slow) = (self.config, self.slow);
            let ways = Ways {
                ranges,
                leaving,
                counters: &body.captures.counters,
            };
            dispatch::dispatcher(self.asm, config, slow, function, ways, *label);
        }
        if self.tables {
            let off = (off_head.as_deref().unwrap_or_default(), off_end);
            self.frames(&added, first_reference, &inserted, &mut parts, off);
        }
        Ok(Copied {
            entry,
            moved,
            map,
            head: off_head,
            parts,
            led,
        })
    }

    /// Completes what unwind tables are made from. `inserted`: of each piece; `off`: where calls go on whose probes are
    /// off, and its end.
    fn frames(
        &self,
        added: &Added,
        first_reference: usize,
        inserted: &[Vec<Inserted>],
        parts: &mut [Part],
        off: (&[(u64, u32)], u32),
    ) {
        let (head, head_end) = off;
        let copied = parts.iter().map(|p| (p.zone, p.copy.clone()));
        let off = head.first().map(|first| (Zone::Stub, first.1..head_end));
        let copied = copied.chain(off).collect();
        let dispatchers: Vec<Label> = added.dispatchers.iter().map(|(label, _)| *label).collect();
        let code = Code::new(self.asm, first_reference, &dispatchers, copied);
        for (part, inserted) in parts.iter_mut().zip(inserted) {
            part.add_inserted(&code, inserted);
        }
        let ends = head.iter().skip(1).map(|next| next.1).chain([head_end]);
        let as_there = head.iter().zip(ends).map(|((svma, at), end)| Aside {
            zone: Zone::Stub,
            code: *at..end,
            svma: *svma,
            pushed: vec![(*at, 0)],
        });
        let asides = &mut parts[0].asides;
        asides.extend(as_there.filter(|a| !a.code.is_empty()));
        asides.sort_by_key(|a| (a.zone, a.code.start));
    }

    fn entry_capturing(&mut self, zone: Zone, site: Site, captures: &[Capture]) {
        let captured = Captured {
            captures,
            copy: self.copy,
        };
        capture::entry(self.asm, zone, self.config, self.slow, site, captured);
    }

    /// Where it ends, but for ways out that lie behind it.
    fn piece(
        &mut self,
        body: &Body,
        piece: usize,
        zone: Zone,
        map: &mut Vec<(u64, Zone, u32)>,
        added: &mut Added,
    ) -> Result<u32, Refusal> {
        let decoded = &body.unit.pieces[piece];
        let captures = &body.captures;
        let sizes = Sizes::measure(
            self.config,
            (&captures.exit, &captures.counters),
            &captures.body,
            self.tables,
        );
        let long = sizes.relax(body.unit, piece, body.inlined, body.fused.calls);
        let (mut leaving, mut before) = (Vec::new(), None);
        for (insn, long) in decoded.insns.iter().zip(long) {
            map.push((insn.svma, zone, self.asm.position(zone)));
            if let Some(before) = before {
                let begin = self.asm.position(zone);
                self.crossing(body, zone, Some(before), Some(insn.svma));
                added.insert(zone, begin..self.asm.position(zone), insn.svma);
            }
            before = insn.goes_on().then_some(insn.svma);
            if body.unit.has_indirect_jump {
                added.landings.push((insn.svma, self.asm.position(zone)));
            }
            if let Some(label) = body.starts.get(&insn.svma) {
                self.asm.bind(zone, *label);
            }
            self.before_call(body, piece, zone, insn, added)?;
            self.insn(body, piece, zone, (insn, long), &mut leaving, added)?;
            self.behind_call(body, zone, insn, added);
            if let Some(edge) = body.edges.get(&insn.svma) {
                let field = self.asm.position(zone) - FIELD_BYTES as u32;
                added.fields.push((*edge, (zone, field)));
            }
            let loaded = self.asm.position(zone);
            for (captured, reg) in body.captures.loaded_at(insn.svma) {
                let (config, function) = (self.config, body.function);
                capture::body(self.asm, zone, config, self.slow, function, captured, reg);
            }
            added.insert(zone, loaded..self.asm.position(zone), insn.next());
        }
        if decoded.falls_through {
            let label = self.asm.label();
            self.asm.rel32(zone, &[0xe9], label, &[]);
            let end = decoded.range.end;
            leaving.push(Leaving {
                label,
                from: end,
                branch: decoded.insns.last().map_or(end, |insn| insn.svma),
                target: end,
            });
        }
        let end = self.asm.position(zone);
        // Behind the whole piece: amid a cold one, which lies in the same zone, the way out would
        // be what a branch that is not taken runs into.
        for way in leaving {
            let begin = self.asm.position(Zone::Cold);
            self.leave(Zone::Cold, body, &way);
            added.insert(Zone::Cold, begin..self.asm.position(Zone::Cold), way.from);
        }
        Ok(end)
    }

    /// Out of line: a tail exit to an address outside of the unit, or into or out of an inlined function.
    fn leave(&mut self, zone: Zone, body: &Body, way: &Leaving) {
        self.asm.bind(zone, way.label);
        let inside = body
            .starts
            .get(&way.target)
            .filter(|_| way.from != way.target);
        let to = inside.map(|_| way.target);
        self.crossing(body, zone, Some(way.branch), to);
        let target = match inside {
            Some(label) => *label,
            None => {
                self.tail_probe(zone, body);
                self.asm.label_at(way.target.wrapping_add(body.bias))
            }
        };
        self.asm.rel32(zone, &[0xe9], target, &[]);
    }

    /// What is recorded of inlined functions on the way from one instruction to another.
    fn crossing(&mut self, body: &Body, zone: Zone, from: Option<u64>, to: Option<u64>) {
        let crossings = body.inlined.on(from, to);
        inlined::probes(self.asm, zone, self.config, self.slow, crossings);
    }

    fn tail_probe(&mut self, zone: Zone, body: &Body) {
        // A jump that leaves may be no tail call: the red zone may hold data.
        let site = Site {
            function: body.function,
            kind: RecordKind::TailExit,
            live: Live::ALL,
            red_zone: true,
            position: probe::RSP,
        };
        let counters = &body.captures.counters;
        capture::exit(self.asm, zone, self.config, self.slow, site, counters);
    }

    fn insn(
        &mut self,
        body: &Body,
        piece: usize,
        zone: Zone,
        (insn, long): (&Insn, bool),
        leaving: &mut Vec<Leaving>,
        added: &mut Added,
    ) -> Result<(), Refusal> {
        let at = (insn.svma - body.unit.pieces[piece].range.start) as usize;
        let bytes = &body.pieces[piece].bytes[at..at + insn.len as usize];
        let outside = |asm: &mut Asm, target: u64| asm.label_at(target.wrapping_add(body.bias));
        let begin = self.asm.position(zone);
        let crosses = |target: u64| {
            let inside = Some(target).filter(|target| body.starts.contains_key(target));
            !body.inlined.on(Some(insn.svma), inside).is_empty()
        };
        let crosses_out = !body.inlined.on(Some(insn.svma), None).is_empty();
        let way = |label, target| Leaving {
            label,
            from: insn.svma,
            branch: insn.svma,
            target,
        };
        match insn.op {
            Op::Plain => self.asm.bytes(zone, bytes),
            Op::RipRelative { disp_at, target } => {
                let target = outside(self.asm, target);
                let disp_at = disp_at as usize;
                self.asm
                    .rel32(zone, &bytes[..disp_at], target, &bytes[disp_at + 4..]);
            }
            Op::Call { .. } if body.fused.calls.contains_key(&insn.svma) => {
                // call [rip + word]
                let word = body.fused.calls[&insn.svma];
                self.asm.rel32(zone, &[0xff, 0x15], word, &[]);
            }
            Op::Call { target } => {
                let target = outside(self.asm, target);
                self.asm.rel32(zone, &bytes[..bytes.len() - 4], target, &[]);
            }
            Op::Jump { target } if crosses(target) => {
                let inside = body.starts.get(&target);
                self.crossing(body, zone, Some(insn.svma), inside.map(|_| target));
                if inside.is_none() {
                    self.tail_probe(zone, body);
                }
                added.insert(zone, begin..self.asm.position(zone), insn.svma);
                let target = match inside {
                    Some(label) => *label,
                    None => outside(self.asm, target),
                };
                self.asm.rel32(zone, &[0xe9], target, &[]);
            }
            Op::JumpIf { target, condition } if crosses(target) => {
                let out = self.asm.label();
                self.asm.rel32(zone, &[0x0f, 0x80 | condition], out, &[]);
                leaving.push(way(out, target));
            }
            Op::Jump { target } => match body.starts.get(&target) {
                Some(label) if long => self.asm.rel32(zone, &[0xe9], *label, &[]),
                Some(label) => self.asm.rel8(zone, &[0xeb], *label),
                None => {
                    self.tail_probe(zone, body);
                    added.insert(zone, begin..self.asm.position(zone), insn.svma);
                    let target = outside(self.asm, target);
                    self.asm.rel32(zone, &[0xe9], target, &[]);
                }
            },
            Op::JumpIf { target, condition } => match body.starts.get(&target) {
                Some(label) if long => self.asm.rel32(zone, &[0x0f, 0x80 | condition], *label, &[]),
                Some(label) => self.asm.rel8(zone, &[0x70 | condition], *label),
                None => {
                    let out = self.asm.label();
                    self.asm.rel32(zone, &[0x0f, 0x80 | condition], out, &[]);
                    leaving.push(way(out, target));
                }
            },
            Op::ShortOnly { target } => {
                // op +2 (over the next jump); jmp +5 (not taken); jmp target (taken)
                self.asm.bytes(zone, &bytes[..bytes.len() - 1]);
                self.asm.bytes(zone, &[2, 0xeb, 5]);
                match body.starts.get(&target) {
                    Some(label) if !crosses(target) => {
                        self.asm.rel32(zone, &[0xe9], *label, &[]);
                    }
                    _ => {
                        let out = self.asm.label();
                        self.asm.rel32(zone, &[0xe9], out, &[]);
                        leaving.push(way(out, target));
                    }
                }
            }
            Op::IndirectJump => {
                let push = push::from_branch(bytes, insn.svma)?;
                let own = !body.inlined.targets_from(insn.svma).is_empty() || crosses_out;
                let mut shared = added.dispatchers.iter().filter(|(_, jump)| jump.is_none());
                let dispatcher = match shared.next() {
                    Some((shared, _)) if !self.tables && !own => *shared,
                    _ => {
                        let label = self.asm.label();
                        added.dispatchers.push((label, own.then_some(insn.svma)));
                        label
                    }
                };
                dispatch::site(self.asm, zone, &push, dispatcher);
                added.insert(zone, begin..self.asm.position(zone), insn.svma);
            }
            Op::IndirectTail { disp_at, target } => {
                self.crossing(body, zone, Some(insn.svma), None);
                self.tail_probe(zone, body);
                added.insert(zone, begin..self.asm.position(zone), insn.svma);
                let target = outside(self.asm, target);
                let disp_at = disp_at as usize;
                self.asm
                    .rel32(zone, &bytes[..disp_at], target, &bytes[disp_at + 4..]);
            }
            Op::Ret => {
                self.crossing(body, zone, Some(insn.svma), None);
                let site = Site {
                    function: body.function,
                    kind: RecordKind::Exit,
                    live: Live::ALL,
                    // Unwind rules say that registers which were popped are still where they were, below the stack
                    // pointer; signal handlers leave that alone, too.
                    red_zone: self.tables,
                    position: probe::RSP,
                };
                capture::exit(
                    self.asm,
                    zone,
                    self.config,
                    self.slow,
                    site,
                    &body.captures.exit,
                );
                added.insert(zone, begin..self.asm.position(zone), insn.svma);
                self.asm.bytes(zone, bytes);
            }
        }
        Ok(())
    }
}

impl Added {
    fn insert(&mut self, zone: Zone, code: Range<u32>, svma: u64) {
        if !code.is_empty() {
            self.inserted.push(Inserted { zone, code, svma });
        }
    }
}
