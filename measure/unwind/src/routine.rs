//! Entries for routines that copies call: generated code that belongs to no function of the file.
use crate::expression::{RIP, RSP};
use crate::module::Common;
use crate::piece::FARTHEST;
use crate::{Refused, bytes};
use std::ops::Range;

/// Called like any function, with the address of the call above what it has pushed.
#[derive(Debug, Clone)]
pub struct Routine<'a> {
    /// Offsets from the segment's base.
    pub code: Range<u64>,
    /// Ascending; before the first one nothing is pushed.
    pub rows: &'a [Row],
}

/// From an offset on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    pub at: u64,
    /// Bytes pushed.
    pub pushed: u32,
    /// Where the caller's rbx is: so many bytes were pushed with it.
    pub rbx: Option<u32>,
}

const RBX: u8 = 3;
/// In a CIE's units of -8 bytes.
const WORD: u32 = 8;

/// A CIE as compilers have it: rsp + 8, with the return address there.
pub fn common() -> (Common, Vec<u8>) {
    let common = Common {
        data_align: -8,
        personality: None,
        is_signal_frame: false,
        has_lsda: false,
    };
    let initial = vec![
        gimli::DW_CFA_def_cfa.0,
        RSP as u8,
        8,
        gimli::DW_CFA_offset.0 | RIP as u8,
        1,
    ];
    (common, initial)
}

impl Routine<'_> {
    pub fn instructions(&self) -> Result<Vec<u8>, Refused> {
        let ascend = self.rows.is_sorted_by(|a, b| a.at < b.at);
        let inside = self.rows.iter().all(|r| self.code.contains(&r.at));
        if self.code.is_empty() || self.code.end > FARTHEST || !ascend || !inside {
            return Err(Refused::Pieces("rows of a routine that are not inside it"));
        }
        let mut out = Vec::new();
        let (mut location, mut pushed, mut rbx) = (self.code.start, 0, None);
        for row in self.rows {
            if row.at > location {
                out.push(gimli::DW_CFA_advance_loc4.0);
                out.extend(((row.at - location) as u32).to_le_bytes());
                location = row.at;
            }
            if row.pushed != pushed {
                out.push(gimli::DW_CFA_def_cfa_offset.0);
                bytes::uleb128(&mut out, u64::from(row.pushed + WORD));
                pushed = row.pushed;
            }
            if row.rbx != rbx {
                match row.rbx {
                    Some(with) => {
                        out.push(gimli::DW_CFA_offset.0 | RBX);
                        bytes::uleb128(&mut out, u64::from(with / WORD + 1));
                    }
                    None => out.push(gimli::DW_CFA_restore.0 | RBX),
                }
                rbx = row.rbx;
            }
        }
        Ok(out)
    }
}
