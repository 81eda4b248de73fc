//! Where the frame of a function lies while it runs, instruction by instruction, from `.eh_frame`.
use super::eh_frame::{bases, section};
use gimli::{CfaRule, Register, UnwindContext, UnwindSection};
use std::ops::Range;

/// The canonical frame address (the stack pointer before the call): a register and what lies between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameAddress {
    Rsp(i32),
    Rbp(i32),
}

/// Ascending.
#[derive(Debug, Default)]
pub struct FrameRules(Vec<(Range<u64>, FrameAddress)>);

impl FrameRules {
    #[cfg(test)]
    pub(crate) fn of(rules: Vec<(Range<u64>, FrameAddress)>) -> FrameRules {
        FrameRules(rules)
    }

    /// Of the unwind entries that cover any of the ascending `ranges`.
    pub(super) fn read(file: &object::File, ranges: &[Range<u64>]) -> FrameRules {
        let mut rules = Vec::new();
        let Some(eh_frame) = section(file) else {
            return FrameRules(rules);
        };
        let bases = bases(file);
        let mut context = UnwindContext::new();
        let mut entries = eh_frame.entries(&bases);
        while let Ok(Some(entry)) = entries.next() {
            let gimli::CieOrFde::Fde(partial) = entry else {
                continue;
            };
            let Ok(fde) = partial.parse(|s, bases, offset| s.cie_from_offset(bases, offset)) else {
                continue;
            };
            let covered = fde.initial_address()..fde.initial_address().saturating_add(fde.len());
            let first = ranges.partition_point(|r| r.end <= covered.start);
            if ranges.get(first).is_none_or(|r| r.start >= covered.end) {
                continue;
            }
            let Ok(mut rows) = fde.rows(&eh_frame, &bases, &mut context) else {
                continue;
            };
            while let Ok(Some(row)) = rows.next_row() {
                if let Some(address) = frame_address(row.cfa()) {
                    rules.push((row.start_address()..row.end_address(), address));
                }
            }
        }
        rules.sort_by_key(|(range, _)| range.start);
        FrameRules(rules)
    }

    /// Before the instruction at `svma`. `None`: it is not known, or computed otherwise.
    pub fn at(&self, svma: u64) -> Option<FrameAddress> {
        let after = self.0.partition_point(|(range, _)| range.start <= svma);
        let (range, address) = &self.0[after.checked_sub(1)?];
        range.contains(&svma).then_some(*address)
    }
}

fn frame_address(rule: &CfaRule<usize>) -> Option<FrameAddress> {
    // x86-64 psABI, figure 3.36
    const RBP: Register = Register(6);
    const RSP: Register = Register(7);
    let CfaRule::RegisterAndOffset { register, offset } = rule else {
        return None;
    };
    let offset = i32::try_from(*offset).ok()?;
    match *register {
        RSP => Some(FrameAddress::Rsp(offset)),
        RBP => Some(FrameAddress::Rbp(offset)),
        _ => None,
    }
}
