//! Landing pads (LSDA): only whether they can stop an exception.
use gimli::Pointer;
use object::{Object, ObjectSection};

/// DW_EH_PE_omit: what follows is not there (LSB, "Exception Frames").
const OMITTED: u8 = 0xff;

/// Whether the LSDA at `at` has a type table: without one its landing pads are clean-ups, which run
/// while another frame's handler is reached. What cannot be read counts as having one.
pub fn has_types(file: &object::File, at: Pointer) -> bool {
    let Pointer::Direct(at) = at else {
        return true;
    };
    type_encoding(file, at) != Some(OMITTED)
}

/// Layout: encoding of the landing pads' base, the base unless omitted, encoding of the types.
fn type_encoding(file: &object::File, at: u64) -> Option<u8> {
    let section = file
        .sections()
        .find(|s| at >= s.address() && at - s.address() < s.size())?;
    let data = section.data().ok()?;
    let head = data.get((at - section.address()) as usize..)?;
    match *head.first()? {
        OMITTED => head.get(1).copied(),
        // Compilers omit the base; whoever does not is not known to have no types.
        _ => None,
    }
}
