//! Where in the source instructions come from: rows of line tables (DWARF 5, section 6.2).
use super::signature::Debug;
use std::collections::BTreeSet;
use std::ops::Range;

/// File, line and column, in one unit's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SourcePlace(u64);

/// By the address where each row begins, ascending; `None`: behind a sequence.
#[derive(Debug, Default)]
pub struct LineRows(Vec<(u64, Option<SourcePlace>)>);

impl SourcePlace {
    /// What does not fit is cut off: it is compared only.
    pub(crate) fn new(file: u64, line: u64, column: u64) -> SourcePlace {
        SourcePlace(file << 44 | (line & 0xff_ffff) << 20 | (column & 0xf_ffff))
    }

    /// Line 0: the compiler cannot tell.
    fn is_known(self) -> bool {
        self.0 >> 20 & 0xff_ffff != 0
    }
}

impl LineRows {
    #[cfg(test)]
    pub(crate) fn of(rows: Vec<(u64, Option<SourcePlace>)>) -> LineRows {
        LineRows(rows)
    }

    /// `None`: no table has it, or it comes from no line.
    pub fn at(&self, svma: u64) -> Option<SourcePlace> {
        self.row(svma).filter(|place| place.is_known())
    }

    /// It comes from no line (the compiler made it up, or moved it): it may be anybody's.
    pub fn is_nobodys(&self, svma: u64) -> bool {
        self.row(svma).is_some_and(|place| !place.is_known())
    }

    fn row(&self, svma: u64) -> Option<SourcePlace> {
        let after = self.0.partition_point(|(begin, _)| *begin <= svma);
        self.0[after.checked_sub(1)?].1
    }
}

impl Debug {
    /// Rows of these units within the ascending `ranges`.
    pub fn line_rows(&self, units: &BTreeSet<usize>, ranges: &[Range<u64>]) -> LineRows {
        let mut found = Vec::new();
        for unit in units {
            let Some(program) = self.units[*unit].line_program.clone() else {
                continue;
            };
            let mut rows = program.rows();
            while let Ok(Some((_, row))) = rows.next_row() {
                let at = row.address();
                let first = ranges.partition_point(|r| r.end < at);
                if ranges.get(first).is_none_or(|r| at < r.start) {
                    continue;
                }
                let column = match row.column() {
                    gimli::ColumnType::LeftEdge => 0,
                    gimli::ColumnType::Column(n) => n.get(),
                };
                let line = row.line().map_or(0, |n| n.get());
                let place = SourcePlace::new(row.file_index(), line, column);
                found.push((at, (!row.end_sequence()).then_some(place)));
            }
        }
        // Of several at one address the last one is meant, and one that begins goes before one that ends.
        found.sort_by_key(|(at, place)| (*at, place.is_some()));
        found.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                *kept = *next;
            }
            same
        });
        LineRows(found)
    }
}
