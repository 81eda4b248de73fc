//! Rows of tables, as gimli reads them.
use super::built::BIAS;
use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, EhFrameHdr, EndianSlice, FrameDescriptionEntry,
    LittleEndian, RegisterRule, UnwindContext, UnwindSection,
};
use hopscope_probe::live::build::Linked;
use object::{Object, ObjectSection};

type Reader<'d> = EndianSlice<'d, LittleEndian>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cfa {
    /// Number of the register (7: rsp), and what is added.
    Register(u16, i64),
    Expression,
}

#[derive(Debug, Clone)]
pub struct Row {
    start: u64,
    end: u64,
    pub cfa: Cfa,
    /// Where registers are saved, from the frame address; the return address (16) is one of them.
    pub saved: Vec<(u16, i64)>,
}

/// Ascending.
pub struct Rows(Vec<Row>);

impl Rows {
    pub fn at(&self, address: u64) -> Option<&Row> {
        let after = self.0.partition_point(|row| row.start <= address);
        let row = &self.0[after.checked_sub(1)?];
        (address < row.end).then_some(row)
    }

    fn read(section: &EhFrame<Reader>, bases: &BaseAddresses, bias: u64) -> Rows {
        let mut rows = Vec::new();
        let mut entries = section.entries(bases);
        while let Some(entry) = entries.next().unwrap() {
            if let CieOrFde::Fde(fde) = entry {
                let fde = fde.parse(EhFrame::cie_from_offset).unwrap();
                add(section, bases, &fde, bias, &mut rows);
            }
        }
        rows.sort_by_key(|row: &Row| row.start);
        assert!(rows.is_sorted_by(|a, b| a.end <= b.start), "rows overlap");
        Rows(rows)
    }

    /// Of a file.
    pub fn of_originals(file: &[u8]) -> Rows {
        let file = object::File::parse(file).unwrap();
        let section = file.section_by_name(".eh_frame").unwrap();
        let bases = BaseAddresses::default().set_eh_frame(section.address());
        let mut eh_frame = EhFrame::new(section.data().unwrap(), LittleEndian);
        eh_frame.set_address_size(8);
        Rows::read(&eh_frame, &bases, BIAS)
    }

    /// Of copies; each of `addresses` is found by the search table, as unwinders look.
    pub fn of_copies(linked: &Linked, addresses: impl Iterator<Item = u64>) -> Rows {
        let tables_at = linked.tables_at.unwrap();
        let blob = &linked.code[(tables_at - linked.at) as usize..];
        let bases = BaseAddresses::default().set_eh_frame_hdr(tables_at);
        let header = EhFrameHdr::new(blob, LittleEndian)
            .parse(&bases, 8)
            .unwrap();
        let at = header.eh_frame_ptr().direct().unwrap();
        let mut eh_frame = EhFrame::new(&blob[(at - tables_at) as usize..], LittleEndian);
        eh_frame.set_address_size(8);
        let bases = bases.set_eh_frame(at);
        let rows = Rows::read(&eh_frame, &bases, 0);
        let table = header.table().unwrap();
        for address in addresses {
            let found = table.fde_for_address(&eh_frame, &bases, address, EhFrame::cie_from_offset);
            let found = found.unwrap_or_else(|e| panic!("{address:#x}: {e}"));
            assert!(found.contains(address), "{address:#x}");
        }
        rows
    }
}

fn add<'d>(
    section: &EhFrame<Reader<'d>>,
    bases: &BaseAddresses,
    fde: &FrameDescriptionEntry<Reader<'d>>,
    bias: u64,
    into: &mut Vec<Row>,
) {
    let mut context = UnwindContext::new();
    let mut table = fde.rows(section, bases, &mut context).unwrap();
    while let Some(row) = table.next_row().unwrap() {
        let saved = row.registers().filter_map(|(register, rule)| match rule {
            RegisterRule::Offset(offset) => Some((register.0, *offset)),
            _ => None,
        });
        into.push(Row {
            start: row.start_address() + bias,
            end: row.end_address() + bias,
            cfa: match row.cfa() {
                CfaRule::RegisterAndOffset { register, offset } => {
                    Cfa::Register(register.0, *offset)
                }
                CfaRule::Expression(_) => Cfa::Expression,
            },
            saved: saved.collect(),
        });
    }
}
