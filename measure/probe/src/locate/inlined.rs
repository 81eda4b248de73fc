//! Where the compiler put a function's code into others: `DW_TAG_inlined_subroutine` (DWARF 5, section 3.3.8).
use super::names::demangle;
use super::pattern::Pattern;
use super::signature::{At, Debug};
use super::source::Reader;
use gimli::{AttributeValue, DebuggingInformationEntry, Unit};
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

/// One place where a function was inlined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inlined {
    /// Demangled.
    pub name: String,
    /// Addresses in the file, ascending, of those that were chosen within it, too.
    pub ranges: Vec<Range<u64>>,
    /// Where its code begins, if the compiler says so; else the first of its ranges does.
    pub entry: u64,
    /// By how many of those that were chosen it is surrounded.
    pub depth: u32,
}

#[derive(Default)]
pub struct FoundInlined {
    /// The surrounding one before those within it.
    pub places: Vec<Inlined>,
    /// There are more.
    pub more: bool,
    /// Numbers of the units that have any.
    pub units: BTreeSet<usize>,
}

/// More of one file are not looked at: a program of 100 MB of code has some 300,000.
const AT_MOST: usize = 1 << 20;
/// Nor those that so many others surround: no frame has a word for each.
const DEPTH_AT_MOST: usize = 64;

struct Named {
    name: String,
    raw: String,
}

impl Debug {
    /// What any of `patterns` chooses in `module`.
    pub fn inlined(&self, module: &str, patterns: &[&Pattern]) -> FoundInlined {
        let mut all = FoundInlined::default();
        let mut known = HashMap::new();
        for unit in 0..self.units.len() {
            let found = &mut all.places;
            let before = found.len();
            all.more |= self.inlined_in(unit, module, patterns, &mut known, found);
            if found.len() > before {
                all.units.insert(unit);
            }
            if found.len() == AT_MOST {
                break;
            }
        }
        all
    }

    fn inlined_in(
        &self,
        unit: usize,
        module: &str,
        patterns: &[&Pattern],
        known: &mut HashMap<(usize, usize), Option<Named>>,
        found: &mut Vec<Inlined>,
    ) -> bool {
        let u = &self.units[unit];
        // What surrounds the entry: its level in the tree, its number in `found`.
        let mut open: Vec<(isize, usize)> = Vec::new();
        let (mut level, mut entries, mut more) = (0, u.entries(), false);
        while let Ok(Some((delta, die))) = entries.next_dfs() {
            level += delta;
            open.retain(|(outer, _)| *outer < level);
            if die.tag() != gimli::DW_TAG_inlined_subroutine {
                continue;
            }
            let Some(origin) = self.refers(unit, die, gimli::DW_AT_abstract_origin) else {
                continue;
            };
            let named = known
                .entry((origin.unit, origin.offset.0))
                .or_insert_with(|| self.named(origin));
            let chosen = |n: &&mut Named| {
                let mut patterns = patterns.iter();
                patterns.any(|p| p.matches_name(module, &n.name, &n.raw))
            };
            let Some(named) = named.as_mut().filter(chosen) else {
                continue;
            };
            let ranges = self.ranges_of(u, die);
            let Some(first) = ranges.first().map(|r| r.start) else {
                continue;
            };
            if found.len() == AT_MOST {
                return true;
            }
            if open.len() == DEPTH_AT_MOST {
                more = true;
                continue;
            }
            // By some compilers' tables, parts of what is within lie outside.
            for (_, outer) in &open {
                found[*outer].ranges.extend(ranges.iter().cloned());
                join(&mut found[*outer].ranges);
            }
            let entry = match die.attr_value(gimli::DW_AT_entry_pc) {
                Ok(Some(AttributeValue::Addr(at))) => at,
                // From the first range, or from the lowest address (section 2.18).
                Ok(Some(value)) => value.udata_value().map_or(first, |n| first.wrapping_add(n)),
                _ => first,
            };
            // It may lie in an empty range, just before what is left of the code.
            let begin = ranges.iter().find(|r| entry < r.end);
            found.push(Inlined {
                name: named.name.clone(),
                entry: begin.map_or(first, |r| entry.max(r.start)),
                depth: open.len() as u32,
                ranges,
            });
            open.push((level, found.len() - 1));
        }
        more
    }

    fn ranges_of(
        &self,
        unit: &Unit<Reader>,
        die: &DebuggingInformationEntry<'_, '_, Reader>,
    ) -> Vec<Range<u64>> {
        let mut ranges = Vec::new();
        if let Ok(Some(value)) = die.attr_value(gimli::DW_AT_ranges) {
            if let Ok(Some(mut all)) = self.dwarf.attr_ranges(unit, value) {
                while let Ok(Some(range)) = all.next() {
                    ranges.push(range.begin..range.end);
                }
            }
        } else {
            ranges.extend(self.single_range(unit, die));
        }
        // The linker leaves ranges of what it dropped at 0, or empty.
        ranges.retain(|range| range.start > 0 && range.start < range.end);
        join(&mut ranges);
        ranges
    }

    /// From an address to another one, or so many bytes. A damaged file may name any.
    fn single_range(
        &self,
        unit: &Unit<Reader>,
        die: &DebuggingInformationEntry<'_, '_, Reader>,
    ) -> Option<Range<u64>> {
        let value = |attribute| die.attr_value(attribute).ok()?;
        let address = |value| self.dwarf.attr_address(unit, value).ok()?;
        let low = address(value(gimli::DW_AT_low_pc)?)?;
        let high = value(gimli::DW_AT_high_pc)?;
        let high = match high.udata_value() {
            Some(bytes) => low.checked_add(bytes)?,
            None => address(high)?,
        };
        Some(low..high)
    }

    fn named(&self, origin: At) -> Option<Named> {
        let text = |attribute| {
            self.inherited(origin, &|at, die| {
                self.text(at.unit, die.attr_value(attribute).ok()??)
            })
        };
        let plain = text(gimli::DW_AT_name);
        let raw = text(gimli::DW_AT_linkage_name).or_else(|| plain.clone())?;
        Some(Named {
            name: demangle(&raw),
            raw,
        })
    }
}

/// Ascending, and what touches is one.
pub fn join<T: Copy + Ord>(ranges: &mut Vec<Range<T>>) {
    ranges.sort_by_key(|r| r.start);
    ranges.dedup_by(|next, range| {
        let touches = next.start <= range.end;
        if touches {
            range.end = range.end.max(next.end);
        }
        touches
    });
}
