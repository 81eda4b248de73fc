//! What `finish` gave, read back as unwinders find it.
use super::rows::{Fde, Reader};
use super::{Memory, SEGMENT};
use gimli::{BaseAddresses, CieOrFde, EhFrame, EhFrameHdr, LittleEndian, UnwindSection};

/// Where the tables lie in the segment.
pub const AT: u64 = 0x3000_0000;

/// What `finish` gave, as it lies in the process.
pub struct Copied<'d> {
    pub blob: &'d [u8],
    pub eh_frame: EhFrame<Reader<'d>>,
    pub bases: BaseAddresses,
    pub memory: Memory<'d>,
    pub entries: usize,
}

impl<'d> Copied<'d> {
    pub fn read(blob: &'d [u8]) -> Copied<'d> {
        let header = BaseAddresses::default().set_eh_frame_hdr(SEGMENT + AT);
        let parsed = EhFrameHdr::new(blob, LittleEndian)
            .parse(&header, 8)
            .unwrap();
        let at = parsed.eh_frame_ptr().direct().unwrap();
        let data = &blob[(at - SEGMENT - AT) as usize..];
        let mut eh_frame = EhFrame::new(data, LittleEndian);
        eh_frame.set_address_size(8);
        let bases = header.set_eh_frame(at);
        let mut found = eh_frame.entries(&bases);
        let mut entries = 0;
        // To the terminator: LSDAs follow.
        while let Some(entry) = found.next().unwrap() {
            entries += usize::from(matches!(entry, CieOrFde::Fde(_)));
        }
        Copied {
            blob,
            eh_frame,
            bases,
            memory: Memory::of(SEGMENT + AT, blob),
            entries,
        }
    }

    /// By the search table.
    pub fn containing(&self, offset: u64) -> Fde<'d> {
        let header = EhFrameHdr::new(self.blob, LittleEndian);
        let parsed = header.parse(&self.bases, 8).unwrap();
        let (section, bases) = (&self.eh_frame, &self.bases);
        let table = parsed.table().unwrap();
        let at = SEGMENT + offset;
        let found = table.fde_for_address(section, bases, at, EhFrame::cie_from_offset);
        found.unwrap()
    }

    /// By the search table, as unwinders do: the same for every address.
    pub fn find(&self, start: u64, end: u64) -> Fde<'d> {
        let header = EhFrameHdr::new(self.blob, LittleEndian);
        let parsed = header.parse(&self.bases, 8).unwrap();
        let table = parsed.table().unwrap();
        let find = |offset| {
            let at = SEGMENT + offset;
            let (section, bases) = (&self.eh_frame, &self.bases);
            table.fde_for_address(section, bases, at, EhFrame::cie_from_offset)
        };
        let found = find(start).unwrap();
        for offset in [start + 1, (start + end) / 2, end - 1] {
            assert_eq!(find(offset).unwrap().offset(), found.offset());
        }
        let behind = find(end).map(|f: Fde| f.offset());
        assert_ne!(behind, Ok(found.offset()));
        found
    }
}
