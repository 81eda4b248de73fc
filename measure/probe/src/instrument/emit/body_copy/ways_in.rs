//! Ways into a copy past what is recorded on them of inlined functions: of computed jumps, of exceptions, and of calls
//! that run in the original.
use super::{Body, Copier};
use crate::instrument::asm::{Label, Zone};
use crate::instrument::body::back_edges::BackEdge;
use crate::instrument::emit::dispatch::Translated;
use crate::instrument::emit::frames::{Inserted, Landing, Part};
use std::collections::HashMap;

/// A loop of the original whose jump leads a call that runs already into the copy, and that of the copy which leads it
/// back.
#[derive(Debug, Clone, Copy)]
pub struct LedLoop {
    pub edge: BackEdge,
    /// What is recorded of one that comes from the original, and behind it the target.
    pub begin: Label,
    /// The last five bytes of the jump in the copy.
    pub field: (Zone, u32),
}

impl Copier<'_> {
    /// What is recorded on the way, and a jump to the instruction: where that begins.
    fn way_in(
        &mut self,
        body: &Body,
        zone: Zone,
        (from, to): (Option<u64>, u64),
        inserted: &mut Vec<Inserted>,
    ) -> u32 {
        let begin = self.asm.position(zone);
        self.crossing(body, zone, from, Some(to));
        self.asm.rel32(zone, &[0xe9], body.starts[&to], &[]);
        let code = begin..self.asm.position(zone);
        inserted.push(Inserted {
            zone,
            code,
            svma: to,
        });
        begin
    }

    /// The ranges of a computed jump that may lead into inlined functions, or out of them.
    pub(super) fn computed(
        &mut self,
        body: &Body,
        jump: u64,
        tables: &[(Zone, u32, Vec<u32>)],
        ranges: &[Translated],
        inserted: &mut [Vec<Inserted>],
    ) -> Vec<Translated> {
        let mut ranges = ranges.to_vec();
        let targets = body.inlined.targets_from(jump);
        for (n, (zone, copied_from, table)) in tables.iter().enumerate() {
            let range = &body.unit.pieces[n].range;
            let mut table = table.clone();
            for target in targets.iter().filter(|target| range.contains(target)) {
                let way = (Some(jump), *target);
                let begin = self.way_in(body, *zone, way, &mut inserted[n]);
                table[(target - range.start) as usize] = begin - copied_from;
            }
            ranges[n].table = self.asm.label();
            self.asm.bind(Zone::Table, ranges[n].table);
            self.asm.words(Zone::Table, &table);
        }
        ranges
    }

    /// Exceptions leave what their call is within, and enter what the landing pad is within.
    pub(super) fn exceptions(
        &mut self,
        body: &Body,
        parts: &mut [Part],
        inserted: &mut [Vec<Inserted>],
    ) {
        for (call, pad) in body.inlined.landings() {
            let places = body.unit.position(*call).zip(body.unit.position(*pad));
            let Some(((from, n), (to, _))) = places else {
                continue;
            };
            let way = (Some(*call), *pad);
            let at = match body.inlined.on(way.0, Some(*pad)).is_empty() {
                true => {
                    let zone = parts[to].zone;
                    (zone, self.asm.offset_in(zone, body.starts[pad]))
                }
                false => {
                    let zone = Zone::Cold;
                    (zone, self.way_in(body, zone, way, &mut inserted[to]))
                }
            };
            let insn = body.unit.pieces[from].insns[n];
            let call = insn.svma..insn.next();
            parts[from].landings.push(Landing { call, at });
        }
    }

    /// `fields`: the last five bytes of jumps in the copy.
    pub(super) fn running_loops(
        &mut self,
        body: &Body,
        fields: &[(BackEdge, (Zone, u32))],
        inserted: &mut [Vec<Inserted>],
    ) -> Vec<LedLoop> {
        let mut begins: HashMap<u64, Label> = HashMap::new();
        let mut led = Vec::with_capacity(fields.len());
        for &(edge, field) in fields {
            let begin = begins.entry(edge.target);
            let begin = *begin.or_insert_with(|| self.amid_a_call(body, edge.target, inserted));
            led.push(LedLoop { edge, begin, field });
        }
        led
    }

    /// Where one goes on that comes from the original: what that place is within is entered.
    fn amid_a_call(&mut self, body: &Body, target: u64, inserted: &mut [Vec<Inserted>]) -> Label {
        let piece = body.unit.position(target).map(|(piece, _)| piece);
        let Some(piece) = piece.filter(|_| !body.inlined.on(None, Some(target)).is_empty()) else {
            return body.starts[&target];
        };
        let begin = self.asm.label();
        self.asm.bind(Zone::Cold, begin);
        self.way_in(body, Zone::Cold, (None, target), &mut inserted[piece]);
        begin
    }
}
