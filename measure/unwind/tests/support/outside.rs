//! What debuggers read of the copies, against what unwinders do.
use super::SEGMENT;
use super::copied::{AT, Copied};
use super::rows::{Fde, Reader, rows};
use gimli::{BaseAddresses, CieOrFde, DebugFrame, LittleEndian, UnwindSection};
use std::collections::HashMap;

pub struct Outside<'d> {
    section: DebugFrame<Reader<'d>>,
    by_address: HashMap<u64, Fde<'d>>,
}

/// Of these tables and of the same once more: a section serves several segments.
pub fn section(blob: &[u8]) -> Vec<u8> {
    let mut section = Vec::new();
    hopscope_unwind::debug_frame(blob, AT, &mut section).unwrap();
    hopscope_unwind::debug_frame(blob, SEGMENT + AT, &mut section).unwrap();
    section
}

impl<'d> Outside<'d> {
    pub fn read(section: &'d [u8]) -> Outside<'d> {
        let mut section = DebugFrame::new(section, LittleEndian);
        section.set_address_size(8);
        let (bases, mut by_address) = (BaseAddresses::default(), HashMap::new());
        let mut entries = section.entries(&bases);
        while let Some(entry) = entries.next().unwrap() {
            if let CieOrFde::Fde(partial) = entry {
                let fde = partial.parse(DebugFrame::cie_from_offset).unwrap();
                by_address.insert(fde.initial_address(), fde);
            }
        }
        Outside {
            section,
            by_address,
        }
    }

    pub fn compare(&self, copy: &Copied, inside: &Fde) {
        let fde = &self.by_address[&inside.initial_address()];
        assert_eq!(fde.end_address(), inside.end_address());
        assert_eq!(fde.is_signal_trampoline(), inside.is_signal_trampoline());
        let seen = rows(&self.section, &BaseAddresses::default(), fde, |_| 0);
        assert_eq!(seen, rows(&copy.eh_frame, &copy.bases, inside, |_| 0));
    }
}
