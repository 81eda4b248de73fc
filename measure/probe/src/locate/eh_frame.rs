//! Function ranges from `.eh_frame`: what a stripped file still tells.
use super::landing_pads;
use gimli::{
    BaseAddresses, CfaRule, EhFrame, EndianSlice, LittleEndian, Register, RegisterRule,
    UnwindContext, UnwindSection, UnwindTableRow,
};
use object::{Object, ObjectSection};

/// One frame description entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fde {
    pub svma: u64,
    pub size: u64,
    pub has_lsda: bool,
    /// It can stop an exception: its landing pads have a type table, or it has a personality routine
    /// and no landing pads (LuaJIT).
    pub catches: bool,
    /// The first row is not that of a function which was just called: a fragment that is jumped to
    /// (`.cold`).
    pub is_fragment: bool,
}

/// Ascending; entries that do not parse are left out.
pub fn fdes(file: &object::File) -> Vec<Fde> {
    let Some(eh_frame) = section(file) else {
        return Vec::new();
    };
    let bases = bases(file);
    let mut context = UnwindContext::new();
    let mut found = Vec::new();
    let mut cies = std::collections::HashMap::new();
    let mut entries = eh_frame.entries(&bases);
    while let Ok(Some(entry)) = entries.next() {
        let gimli::CieOrFde::Fde(partial) = entry else {
            continue;
        };
        let parsed = partial.parse(|section, bases, offset| {
            cies.entry(offset)
                .or_insert_with(|| section.cie_from_offset(bases, offset))
                .clone()
        });
        let Ok(fde) = parsed else { continue };
        if fde.len() == 0 {
            continue;
        }
        let first_row = fde.rows(&eh_frame, &bases, &mut context).ok();
        let entered_by_call = first_row
            .and_then(|mut rows| rows.next_row().ok().flatten().map(is_entered_by_call))
            .unwrap_or(false);
        found.push(Fde {
            svma: fde.initial_address(),
            size: fde.len(),
            has_lsda: fde.lsda().is_some(),
            catches: fde.personality().is_some()
                && fde
                    .lsda()
                    .is_none_or(|at| landing_pads::has_types(file, at)),
            is_fragment: !entered_by_call,
        });
    }
    found.sort_by_key(|f| f.svma);
    found.dedup_by_key(|f| f.svma);
    found
}

pub(super) fn section<'d>(
    file: &object::File<'d>,
) -> Option<EhFrame<EndianSlice<'d, LittleEndian>>> {
    let data = file.section_by_name(".eh_frame")?.data().ok()?;
    let mut eh_frame = EhFrame::new(data, LittleEndian);
    eh_frame.set_address_size(8);
    Some(eh_frame)
}

pub(super) fn bases(file: &object::File) -> BaseAddresses {
    let address = |name| file.section_by_name(name).map_or(0, |s| s.address());
    BaseAddresses::default()
        .set_eh_frame(address(".eh_frame"))
        .set_text(address(".text"))
        .set_got(address(".got"))
}

/// Callee-saved registers: rbx, rbp, r12 to r15 (x86-64 psABI, figure 3.36).
const CALLEE_SAVED: [u16; 6] = [3, 6, 12, 13, 14, 15];

/// Behind a call the frame address is rsp + 8 (register 7), and nothing has been saved yet.
fn is_entered_by_call(row: &UnwindTableRow<usize>) -> bool {
    let frame = CfaRule::RegisterAndOffset {
        register: Register(7),
        offset: 8,
    };
    let saved = |(register, rule): &(Register, RegisterRule<usize>)| {
        CALLEE_SAVED.contains(&register.0) && matches!(rule, RegisterRule::Offset(_))
    };
    *row.cfa() == frame && !row.registers().any(saved)
}
