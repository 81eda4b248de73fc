//! Unwind tables of the copies of one segment.
use crate::instrument::asm::{Asm, Zone};
use crate::instrument::body::refusal::Refusal;
use crate::instrument::emit::follow;
use crate::instrument::emit::frames::Part;
use crate::locate::Image;
use hopscope_event::FunctionId;
use hopscope_unwind::{Aside, Landing, Piece, Refused, Routine, Row, Tables};
use std::collections::HashSet;
use std::ops::Range;

/// A copy, and what its tables are made from.
pub(super) struct Framed {
    pub id: FunctionId,
    /// Of those that are open.
    module: usize,
    must: bool,
    parts: Vec<Part>,
}

/// Unwind tables of the modules that functions were selected from, each opened once.
#[derive(Default)]
pub(super) struct Modules<'a>(Vec<(*const Image, u64, hopscope_unwind::Module<'a>)>);

impl<'a> Modules<'a> {
    fn open(&mut self, image: &'a Image, bias: u64) -> Result<usize, hopscope_unwind::Refused> {
        let known = |(of, at, _): &(*const Image, u64, _)| std::ptr::eq(*of, image) && *at == bias;
        // Functions come module by module.
        match self.0.iter().rposition(known) {
            Some(n) => Ok(n),
            None => {
                let module = image.unwind_tables(bias)?;
                self.0.push((image, bias, module));
                Ok(self.0.len() - 1)
            }
        }
    }

    /// Of `image`, mapped `bias` above its own addresses. Of all instructions only those are kept that tables name: there
    /// are millions.
    pub fn frame(
        &mut self,
        (image, bias): (&'a Image, u64),
        (id, must): (FunctionId, bool),
        mut parts: Vec<Part>,
    ) -> Result<Framed, hopscope_unwind::Refused> {
        let module = self.open(image, bias)?;
        let ranges: Vec<_> = parts.iter().map(|p| p.original.clone()).collect();
        let named = self.0[module].2.locations(&ranges)?;
        for part in &mut parts {
            let calls = part.landings.iter();
            let calls = calls.flat_map(|l| [l.call.start, l.call.end]);
            let calls: HashSet<u64> = calls.collect();
            part.map
                .retain(|(svma, _)| named.binary_search(svma).is_ok() || calls.contains(svma));
            part.map.shrink_to_fit();
        }
        Ok(Framed {
            id,
            module,
            must,
            parts,
        })
    }
}

/// Tables, and functions that must have some and cannot.
pub(super) struct Made {
    pub bytes: Vec<u8>,
    pub refused: Vec<(FunctionId, Refusal)>,
}

/// `at`: where the tables will lie; `routines`: what copies call, in the cold zone.
pub(super) fn make(
    asm: &Asm,
    framed: Vec<Framed>,
    modules: &Modules,
    routines: &[Range<u32>],
    at: u64,
) -> Result<Made, Refused> {
    let (mut tables, mut refused) = (Tables::new(), Vec::new());
    for copy in framed {
        let parts = copy.parts.iter();
        let placed: Vec<Placed> = parts.map(|part| Placed::of(asm, part)).collect();
        let asides: Vec<_> = placed.iter().map(Placed::asides).collect();
        let pieces = placed.iter().zip(&asides);
        let pieces: Vec<_> = pieces.map(|(p, asides)| p.piece(asides)).collect();
        if let Err(why) = tables.add(&modules.0[copy.module].2, &pieces)
            && copy.must
        {
            refused.push((copy.id, Refusal::UnwindTables(why)));
        }
    }
    if tables.is_empty() {
        let bytes = Vec::new();
        return Ok(Made { bytes, refused });
    }
    for code in routines {
        let offset = |at| asm.address_of(Zone::Cold, at, 0);
        let rows = follow::called(asm, Zone::Cold, code);
        let rows = rows.into_iter().map(|row| Row {
            at: offset(row.at),
            pushed: row.pushed,
            rbx: row.rbx,
        });
        let rows: Vec<Row> = rows.collect();
        tables.add_routine(&Routine {
            code: offset(code.start)..offset(code.end),
            rows: &rows,
        })?;
    }
    let bytes = tables.finish(at)?;
    Ok(Made { bytes, refused })
}

type Pushed = Vec<(u64, i32)>;

/// A part in offsets of its segment.
struct Placed<'p> {
    part: &'p Part,
    copy: Range<u64>,
    map: Vec<(u64, u64)>,
    pushed: Pushed,
    /// Where each aside lies.
    apart: Vec<(Range<u64>, Pushed)>,
    landings: Vec<Landing>,
}

impl<'p> Placed<'p> {
    fn of(asm: &Asm, part: &'p Part) -> Placed<'p> {
        let offset = |zone, at: &u32| asm.address_of(zone, *at, 0);
        let range = |zone, r: &Range<u32>| offset(zone, &r.start)..offset(zone, &r.end);
        let pushed = |zone, pushed: &[(u32, i32)]| {
            let all = pushed.iter().map(|(at, n)| (offset(zone, at), *n));
            all.collect::<Pushed>()
        };
        let map = part.map.iter();
        let map = map
            .map(|(svma, at)| (*svma, offset(part.zone, at)))
            .collect();
        let asides = part.asides.iter();
        let apart = asides.map(|a| (range(a.zone, &a.code), pushed(a.zone, &a.pushed)));
        let landings = part.landings.iter().map(|l| Landing {
            call: l.call.clone(),
            at: offset(l.at.0, &l.at.1),
        });
        Placed {
            part,
            copy: range(part.zone, &part.copy),
            map,
            pushed: pushed(part.zone, &part.pushed),
            apart: apart.collect(),
            landings: landings.collect(),
        }
    }

    fn asides(&self) -> Vec<Aside<'_>> {
        let all = self.part.asides.iter().zip(&self.apart);
        let all = all.map(|(aside, (copy, pushed))| Aside {
            copy: copy.clone(),
            svma: aside.svma,
            pushed,
        });
        all.collect()
    }

    fn piece<'a>(&'a self, asides: &'a [Aside<'a>]) -> Piece<'a> {
        Piece {
            original: self.part.original.clone(),
            copy: self.copy.clone(),
            map: &self.map,
            pushed: &self.pushed,
            asides,
            landings: &self.landings,
        }
    }
}
