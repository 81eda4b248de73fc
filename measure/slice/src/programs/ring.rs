//! The ring between the kernel programs and us: finished records, and their packets' bytes.
use super::SliceError;
use hopscope_bpf::{Ring, object};
use hopscope_event::slice::SliceRecord;
use libbpf_rs::Object;
use std::cell::RefCell;
use std::rc::Rc;

/// What the programs handed over.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "nearly all are records")]
pub enum Entry {
    Record(SliceRecord),
    /// Comes before its record.
    Bytes {
        id: u64,
        /// From the network header on, as it was.
        wire_len: u32,
        /// Link header, where the packet had one.
        link: Vec<u8>,
        /// From the network header on, as far as they were kept.
        bytes: Vec<u8>,
    },
}

/// `BYTES_ENTRY` of `bpf/contract.h`
const BYTES_ENTRY: u64 = 1 << 63;
const LINK_MAX: usize = 24;
const BYTES_AT: usize = 16 + LINK_MAX;

pub struct Drained {
    ring: Ring,
    entries: Rc<RefCell<Vec<Entry>>>,
}

pub(super) fn open(programs: &Object) -> Result<Drained, SliceError> {
    let map = object::map(programs, "ring")?;
    let entries = Rc::new(RefCell::new(Vec::new()));
    let kept = entries.clone();
    let ring = Ring::open(&map, "reading the ring of records", move |bytes| {
        if let Some(entry) = entry(bytes) {
            kept.borrow_mut().push(entry);
        }
    })?;
    Ok(Drained { ring, entries })
}

/// Of one look: programs can write as fast as we read, and what was read lies in memory.
pub const ENTRIES_MAX: usize = 4096;

impl Drained {
    /// What lies in the ring now, up to [`ENTRIES_MAX`]: as many say that there may be more. Never
    /// waits: the programs wake nobody.
    ///
    /// # Errors
    /// The ring cannot be read.
    pub fn take(&mut self) -> Result<Vec<Entry>, SliceError> {
        self.ring.consume(ENTRIES_MAX)?;
        Ok(std::mem::take(&mut self.entries.borrow_mut()))
    }

    /// All of it; only where nothing is written meanwhile, or little.
    ///
    /// # Errors
    /// As [`Drained::take`].
    pub fn take_all(&mut self) -> Result<Vec<Entry>, SliceError> {
        let mut all = Vec::new();
        loop {
            let entries = self.take()?;
            let is_last = entries.len() < ENTRIES_MAX;
            all.extend(entries);
            if is_last {
                return Ok(all);
            }
        }
    }
}

fn entry(bytes: &[u8]) -> Option<Entry> {
    let id = u64::from_ne_bytes(bytes.get(..8)?.try_into().ok()?);
    if id & BYTES_ENTRY == 0 {
        let record: &[u8; SliceRecord::BYTES] = bytes.try_into().ok()?;
        // SAFETY: the array is as long as the record, and every field of a record has a meaning for
        // every pattern of bits; `read_unaligned` asks for no alignment.
        let record = unsafe { record.as_ptr().cast::<SliceRecord>().read_unaligned() };
        return Some(Entry::Record(record));
    }
    let half = |at: usize| Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let wire_len = u32::from_ne_bytes(bytes.get(8..12)?.try_into().ok()?);
    let (captured, link) = (usize::from(half(12)?), usize::from(half(14)?));
    Some(Entry::Bytes {
        id: id & !BYTES_ENTRY,
        wire_len,
        link: bytes.get(16..16 + link.min(LINK_MAX))?.to_vec(),
        bytes: bytes.get(BYTES_AT..BYTES_AT + captured)?.to_vec(),
    })
}
