//! The two recordings, their rows by name, and the passes over their calls.
use super::{By, DiffOptions, Time};
use crate::error::{Result, refuse, require};
use crate::opened::Opened;
use crate::selection::{Part, Selection};
use hopscope_analyze::diff::{Blocks, Spread};
use hopscope_analyze::trail::{Begun, End, Observer, Times, Totals};
use hopscope_event::{FunctionId, Tsc};
use hopscope_report::Streams;
use hopscope_report::export::Facts;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

/// All of a recording.
pub(super) struct Side(Selection);

/// Rows that both have, by name, and where the calls of each function go.
pub(super) struct Rows {
    pub(super) names: Vec<String>,
    pub(super) only: [Vec<String>; 2],
    row_of: [HashMap<FunctionId, usize>; 2],
}

/// Which time of a call is compared.
pub(super) struct Chosen {
    time: Time,
    corrected: bool,
    pub(super) said: String,
}

/// The first pass.
pub(super) struct Spreads {
    pub(super) rows: Vec<Spread>,
    pub(super) doubts: Vec<String>,
    start: Tsc,
    end: Tsc,
}

impl Side {
    pub(super) fn new(path: &Path, opened: Opened) -> Result<Side> {
        let file = path.display().to_string();
        require!(
            !opened.reader.tables().functions.is_empty(),
            "{file} holds no calls to compare: it is a recording of packets only, or of no function"
        );
        Ok(Side(Selection::new(path, opened, Part::default())?))
    }

    /// Each function's row. Functions of one file with one name (static ones) are told apart by
    /// their source file, else by their order in memory.
    fn rows(&self, by: By) -> Vec<(FunctionId, String)> {
        let tables = self.0.tables();
        let module = |f: &hopscope_event::FunctionEntry| {
            let module = tables.modules.iter().find(|m| m.ix == f.module);
            let path = module.map_or("?", |m| m.path.as_str());
            path.rsplit('/').next().unwrap_or_default().to_owned()
        };
        let mut same: BTreeMap<String, Vec<_>> = BTreeMap::new();
        for f in &tables.functions {
            let name = match by {
                By::Module => module(f),
                By::Function | By::Slice => format!("{}!{}", module(f), f.name),
            };
            same.entry(name).or_default().push(f);
        }
        let mut rows = Vec::new();
        for (name, mut functions) in same {
            if by == By::Module || functions.len() == 1 {
                rows.extend(functions.iter().map(|f| (f.id, name.clone())));
                continue;
            }
            functions.sort_by_key(|f| f.svma);
            let files: BTreeSet<_> = functions.iter().filter_map(|f| f.file.as_ref()).collect();
            let by_file = files.len() == functions.len();
            for (nth, f) in functions.iter().enumerate() {
                let which = match (&f.file, by_file) {
                    (Some(file), true) => file.clone(),
                    _ => format!("number {} in memory", nth + 1),
                };
                rows.push((f.id, format!("{name} ({which})")));
            }
        }
        rows
    }

    /// Leads each call with a usable time past `each`: entry, function, time in tenths of ns.
    fn pass(&self, chosen: &Chosen, each: impl FnMut(FunctionId, Tsc, i64)) -> Result<Totals> {
        let frequency = self.0.tables().meta.tsc_frequency;
        let mut observer = Timed {
            chosen,
            tenths_a_tick: 1e10 / frequency.0.max(1) as f64,
            each,
        };
        self.0.observe(&mut observer, |_| Ok(()))
    }

    pub(super) fn spreads(&self, rows: &Rows, side: usize, c: &Chosen) -> Result<Spreads> {
        let mut spreads = vec![Spread::default(); rows.names.len()];
        let (mut start, mut end) = (Tsc(u64::MAX), Tsc(0));
        let totals = self.pass(c, |function, entry, tenths| {
            (start, end) = (start.min(entry), end.max(entry));
            if let Some(row) = rows.row_of[side].get(&function) {
                spreads[*row].add(tenths);
            }
        })?;
        Ok(Spreads {
            rows: spreads,
            doubts: self.doubts(&totals),
            start,
            end,
        })
    }

    pub(super) fn blocks(
        &self,
        rows: &Rows,
        side: usize,
        chosen: &Chosen,
        own: &Spreads,
        other: &Spreads,
    ) -> Result<Vec<Blocks>> {
        let pairs = own.rows.iter().zip(&other.rows);
        let new = |(own_row, other)| Blocks::new(own_row, other, own.start, own.end);
        let mut blocks: Vec<Blocks> = pairs.map(new).collect();
        self.pass(chosen, |function, entry, tenths| {
            if let Some(row) = rows.row_of[side].get(&function) {
                blocks[*row].add(entry, tenths);
            }
        })?;
        Ok(blocks)
    }

    fn doubts(&self, totals: &Totals) -> Vec<String> {
        let mut facts = Facts::of(&self.0.recording(Streams::default()));
        facts.calls(&totals.balance, &totals.oddities);
        let text = |f: &hopscope_report::export::Fact| format!("{}: {}", f.name, f.text());
        facts.matters().map(text).collect()
    }
}

impl Rows {
    pub(super) fn of(sides: &[Side; 2], by: By) -> Rows {
        let of_sides = [sides[0].rows(by), sides[1].rows(by)];
        let names_of = |i: usize| -> BTreeSet<&str> {
            of_sides[i].iter().map(|(_, name)| name.as_str()).collect()
        };
        let (a, b) = (names_of(0), names_of(1));
        let names: Vec<String> = a.intersection(&b).map(|n| (*n).to_owned()).collect();
        let missing = |x: &BTreeSet<&str>, y: &BTreeSet<&str>| -> Vec<String> {
            x.difference(y).map(|n| (*n).to_owned()).collect()
        };
        let only = [missing(&a, &b), missing(&b, &a)];
        let number: HashMap<&str, usize> = names
            .iter()
            .enumerate()
            .map(|(i, n)| (n.as_str(), i))
            .collect();
        let row_of = of_sides.each_ref().map(|rows| {
            let known =
                |(id, name): &(FunctionId, String)| Some((*id, *number.get(name.as_str())?));
            rows.iter().filter_map(known).collect()
        });
        Rows {
            names,
            only,
            row_of,
        }
    }
}

/// Times as measured compare best: what the probes add is the same in both, and no calibration's error
/// comes in. That holds where machine and measured functions are the same.
pub(super) fn times(sides: &[Side; 2], options: &DiffOptions) -> Result<Chosen> {
    let tables = [sides[0].0.tables(), sides[1].0.tables()];
    let [a, b] = tables;
    let machine = (&a.meta.host, &a.meta.cpu) == (&b.meta.host, &b.meta.cpu);
    let functions = Rows::of(sides, By::Function).only.iter().all(Vec::is_empty);
    let known = tables.iter().all(|t| t.meta.probe_cost.is_some());
    let (corrected, why) = match (options.corrected, machine && functions, known) {
        (Some(true), _, false) => refuse!(
            "a recording lacks the cost of its probes: leave out --corrected, or record without --no-calibration"
        ),
        (Some(corrected), _, _) => (corrected, "as asked"),
        (None, true, _) => (
            false,
            "same machine, same functions: the probes add the same to both",
        ),
        (None, false, true) => (true, "machine or measured functions are not the same"),
        (None, false, false) => (
            false,
            "although machine or measured functions are not the same: the cost of the probes is not known",
        ),
    };
    let what = match options.time {
        Time::Own => "own time of a call",
        Time::Total => "time of a call with its measured callees",
    };
    let how = if corrected {
        "median probe cost taken out"
    } else {
        "as measured"
    };
    Ok(Chosen {
        time: options.time,
        corrected,
        said: format!("{what}, {how} ({why})"),
    })
}

struct Timed<'a, F> {
    chosen: &'a Chosen,
    tenths_a_tick: f64,
    each: F,
}

impl Chosen {
    fn of(&self, times: &Times) -> Option<i64> {
        match (self.time, self.corrected) {
            (Time::Own, false) => Some(times.own),
            (Time::Own, true) => times.own_corrected,
            (Time::Total, false) => Some(times.total),
            (Time::Total, true) => times.total_corrected,
        }
    }
}

impl<F: FnMut(FunctionId, Tsc, i64)> Observer for Timed<'_, F> {
    fn ended(&mut self, call: &Begun, end: &End) {
        // A call whose clock ran backwards has no time; the doubts count it.
        if let End::Exit(times) = end
            && times.total >= 0
            && let Some(ticks) = self.chosen.of(times)
        {
            let tenths = (ticks as f64 * self.tenths_a_tick).round() as i64;
            (self.each)(call.function, call.entry, tenths);
        }
    }
}
