//! Function ranges from `.eh_frame`: what a stripped file still tells.
use gimli::{
    BaseAddresses, CfaRule, EhFrame, LittleEndian, Register, UnwindContext, UnwindSection,
};
use object::{Object, ObjectSection};

/// One frame description entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fde {
    pub svma: u64,
    pub size: u64,
    pub has_lsda: bool,
    /// The first row is not CFA = rsp + 8: a fragment that is jumped to (`.cold`), not called.
    pub is_fragment: bool,
}

/// Ascending; entries that do not parse are left out.
pub fn fdes(file: &object::File) -> Vec<Fde> {
    let Some(section) = file.section_by_name(".eh_frame") else {
        return Vec::new();
    };
    let Ok(data) = section.data() else {
        return Vec::new();
    };
    let address = |name| file.section_by_name(name).map_or(0, |s| s.address());
    let bases = BaseAddresses::default()
        .set_eh_frame(section.address())
        .set_text(address(".text"))
        .set_got(address(".got"));
    let mut eh_frame = EhFrame::new(data, LittleEndian);
    eh_frame.set_address_size(8);
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
        let first_row = fde
            .rows(&eh_frame, &bases, &mut context)
            .ok()
            .and_then(|mut rows| rows.next_row().ok().flatten().map(|row| row.cfa().clone()));
        // DWARF register 7 is rsp (x86-64 psABI, figure 3.36).
        let entered_by_call = matches!(
            first_row,
            Some(CfaRule::RegisterAndOffset {
                register: Register(7),
                offset: 8
            })
        );
        found.push(Fde {
            svma: fde.initial_address(),
            size: fde.len(),
            has_lsda: fde.lsda().is_some(),
            is_fragment: !entered_by_call,
        });
    }
    found.sort_by_key(|f| f.svma);
    found.dedup_by_key(|f| f.svma);
    found
}
