//! The tables of a segment once more, for readers outside of the process: `.debug_frame` (DWARF 5, section 6.4.1), whose addresses are
//! absolute, so that one section serves segments that lie far from each other.
use crate::Refused;
use crate::bytes;

/// Of a CIE in `.debug_frame`.
const CIE_ID: u32 = u32::MAX;
/// What `Tables` writes first: a version and three encodings.
const HEADER: usize = 12;

/// Appends the entries of `tables`, which lie at address `at` and were made by [`Tables::finish`](crate::Tables::finish), to a `.debug_frame`.
///
/// # Errors
/// When they are not such tables.
pub fn debug_frame(tables: &[u8], at: u64, out: &mut Vec<u8>) -> Result<(), Refused> {
    let mut cies: Vec<(usize, Cie)> = Vec::new();
    let mut entry_at = eh_frame_at(tables)?;
    loop {
        let entry = Entry::at(tables, entry_at)?;
        let Some(entry) = entry else {
            return Ok(());
        };
        if entry.id == 0 {
            let cie = Cie::copy(&entry, out)?;
            cies.push((entry_at, cie));
        } else {
            let cie_at = (entry_at + 4).checked_sub(entry.id as usize);
            let cie = cies.iter().find(|(at, _)| Some(*at) == cie_at);
            let (_, cie) = cie.ok_or(Refused::NotOurs)?;
            cie.entry(&entry, at + entry_at as u64, out)?;
        }
        entry_at += 4 + entry.len;
    }
}

fn eh_frame_at(tables: &[u8]) -> Result<usize, Refused> {
    let way = word(tables, 4)?;
    let at = 4 + way as usize;
    (HEADER <= at && at < tables.len())
        .then_some(at)
        .ok_or(Refused::NotOurs)
}

fn word(bytes: &[u8], at: usize) -> Result<u32, Refused> {
    let word = bytes.get(at..).and_then(|b| b.first_chunk());
    word.map(|b| u32::from_le_bytes(*b)).ok_or(Refused::NotOurs)
}

struct Entry<'t> {
    len: usize,
    id: u32,
    /// Behind the identification.
    rest: &'t [u8],
}

impl<'t> Entry<'t> {
    /// `None`: the terminator.
    fn at(tables: &'t [u8], at: usize) -> Result<Option<Entry<'t>>, Refused> {
        let len = word(tables, at)? as usize;
        if len == 0 {
            return Ok(None);
        }
        let rest = tables.get(at + 8..at + 4 + len).ok_or(Refused::NotOurs)?;
        let id = word(tables, at + 4)?;
        Ok(Some(Entry { len, id, rest }))
    }
}

struct Cie {
    /// In `.debug_frame`.
    at: u32,
    is_signal_frame: bool,
}

impl Cie {
    fn copy(entry: &Entry, out: &mut Vec<u8>) -> Result<Cie, Refused> {
        // Version 1, a text, three numbers of one byte each, a length, what the text says, instructions.
        let text_end = entry.rest.iter().skip(1).position(|b| *b == 0);
        let text_end = 1 + text_end.ok_or(Refused::NotOurs)?;
        let is_signal_frame = entry.rest[1..text_end].contains(&b'S');
        let fields = text_end + 1;
        let field = |n: usize| entry.rest.get(fields + n).copied().ok_or(Refused::NotOurs);
        if (0..4).any(|n| !field(n).is_ok_and(|byte| byte < 0x80)) {
            return Err(Refused::NotOurs);
        }
        let instructions = fields + 4 + field(3)? as usize;
        let instructions = entry.rest.get(instructions..).ok_or(Refused::NotOurs)?;
        let at = u32::try_from(out.len()).map_err(|_| Refused::Place)?;
        let mut body = CIE_ID.to_le_bytes().to_vec();
        body.push(1);
        body.extend(if is_signal_frame { &b"zS"[..] } else { b"" });
        body.push(0);
        body.extend(&entry.rest[fields..fields + 3]);
        if is_signal_frame {
            bytes::uleb128(&mut body, 0);
        }
        body.extend(instructions);
        append(out, body);
        Ok(Cie {
            at,
            is_signal_frame,
        })
    }

    /// `here`: where the entry lies.
    fn entry(&self, entry: &Entry, here: u64, out: &mut Vec<u8>) -> Result<(), Refused> {
        let way = word(entry.rest, 0)? as i32;
        let begin = (here + 8).wrapping_add_signed(way.into());
        let len = word(entry.rest, 4)?;
        let augmentation = *entry.rest.get(8).ok_or(Refused::NotOurs)? as usize;
        let instructions = entry.rest.get(9 + augmentation..).ok_or(Refused::NotOurs)?;
        let mut body = self.at.to_le_bytes().to_vec();
        body.extend(begin.to_le_bytes());
        body.extend(u64::from(len).to_le_bytes());
        if self.is_signal_frame {
            bytes::uleb128(&mut body, 0);
        }
        body.extend(instructions);
        append(out, body);
        Ok(())
    }
}

/// With its length before it, DW_CFA_nop behind it.
fn append(out: &mut Vec<u8>, mut body: Vec<u8>) {
    body.resize((body.len() + 4).next_multiple_of(8) - 4, 0);
    out.extend((body.len() as u32).to_le_bytes());
    out.extend(body);
}
