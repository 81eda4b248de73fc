//! Addresses in the file's segments.
use crate::Refused;
use crate::pointer::{self, Bytes};

/// What a length of zero means.
#[derive(Clone, Copy)]
pub enum Terminator {
    /// The section's end is known.
    Inside,
    Ends,
}

pub fn find<'d>(segments: &[Bytes<'d>], svma: u64) -> Option<Bytes<'d>> {
    segments.iter().find_map(|s| {
        let at = svma.checked_sub(s.svma)?;
        let data = s.data.get(usize::try_from(at).ok()?..)?;
        (!data.is_empty()).then_some(Bytes { data, svma, ..*s })
    })
}

/// `.eh_frame` of a file without section headers: the search table's header says where it is.
pub fn behind<'d>(
    segments: &[Bytes<'d>],
    header: u64,
) -> Result<(u64, &'d [u8], Terminator), Refused> {
    let refused = |why: &str| Refused::EhFrame {
        at: header,
        why: why.into(),
    };
    let bytes = find(segments, header).ok_or_else(|| refused("its header is not in the file"))?;
    // Version, encodings of the pointer, of the count and of the table.
    let [1, encoding, _, _] = bytes.data.get(..4).unwrap_or_default() else {
        return Err(refused("its header has another version"));
    };
    pointer::check(*encoding, "unwind table", bytes.absolute_is_final)?;
    let mut cursor = crate::bytes::Cursor::new(bytes.data, 4);
    let svma = pointer::address(*encoding, bytes, &mut cursor);
    let found = svma.and_then(|svma| find(segments, svma));
    let found = found.ok_or_else(|| refused("it is not in the file"))?;
    Ok((found.svma, found.data, Terminator::Ends))
}
