//! Puts a translated filter in the place that a BPF program keeps for it.
use super::ebpf::{self, Reg};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    #[error("the kernel program has no block for a filter")]
    Missing,
    #[error("the kernel program has more than one block for a filter, at {first} and at {second}")]
    Twice { first: usize, second: usize },
    #[error(
        "the block for a filter, at {at}, is not of {wanted} instructions: {present} are its own"
    )]
    Length {
        at: usize,
        present: usize,
        wanted: usize,
    },
    #[error("the filter is of {insns} instructions, and its block in the kernel program of {room}")]
    TooLong { insns: usize, room: usize },
}

/// `goto +0`, of which a block consists behind its marker.
pub const FILLER: u64 = 0x05;

/// What nothing needs once the filter has its result.
const FREE: Reg = Reg(5);

/// Exactly `len` instructions that do what `insns` do: the rest jumps over itself.
///
/// The verifier wants every instruction to be reachable, and walks each of them. So the jump is one
/// that is always taken, which it sees: it neither walks the rest nor keeps it.
///
/// # Errors
/// When there are more than `len`.
pub fn pad(insns: &[u64], len: usize) -> Result<Vec<u64>, PlaceError> {
    let too_long = PlaceError::TooLong {
        insns: insns.len(),
        room: len,
    };
    let rest = len.checked_sub(insns.len()).ok_or(too_long.clone())?;
    let mut padded = insns.to_vec();
    if rest > 2 {
        let over = i16::try_from(rest - 2).map_err(|_| too_long)?;
        padded.push(ebpf::alu64(ebpf::MOV, FREE, 0));
        padded.push(ebpf::with_distance(ebpf::jump64(ebpf::JEQ, FREE, 0), over));
    }
    padded.resize(len, FILLER);
    Ok(padded)
}

/// Overwrites the one block of the program, marker included, with `filter` and padding. The block is
/// the two instructions of `marker` and as many of `FILLER` as make it `block_len`. Nothing else of
/// `program` changes, neither does its length.
///
/// # Errors
/// When there is no such block, a second one, one of another length, or the filter does not fit; then
/// nothing changes.
pub fn place(
    program: &mut [u64],
    marker: [u64; 2],
    block_len: usize,
    filter: &[u64],
) -> Result<(), PlaceError> {
    let mut found = blocks(program, marker);
    let at = found.next().ok_or(PlaceError::Missing)?;
    if let Some(second) = found.next() {
        return Err(PlaceError::Twice { first: at, second });
    }
    drop(found);
    let padded = pad(filter, block_len)?;
    of_length(program, at, block_len)?;
    program[at..at + block_len].copy_from_slice(&padded);
    Ok(())
}

/// The same for all blocks of an object file's bytes, before it is opened; gives how many there were.
/// A program that is compiled with an inlined block has one for each place where it is used.
///
/// # Errors
/// When there is no block, one of another length, or the filter does not fit; then nothing changes.
pub fn place_in_object(
    object: &mut [u8],
    marker: [u64; 2],
    block_len: usize,
    filter: &[u64],
) -> Result<usize, PlaceError> {
    // Code is aligned to its instructions in the file too.
    let word = |bytes: &[u8]| u64::from_le_bytes(std::array::from_fn(|at| bytes[at]));
    let words: Vec<u64> = object.chunks_exact(8).map(word).collect();
    let found: Vec<usize> = blocks(&words, marker).collect();
    if found.is_empty() {
        return Err(PlaceError::Missing);
    }
    for at in &found {
        of_length(&words, *at, block_len)?;
    }
    let padded = pad(filter, block_len)?;
    let bytes: Vec<u8> = padded.into_iter().flat_map(u64::to_le_bytes).collect();
    for at in &found {
        object[8 * at..][..bytes.len()].copy_from_slice(&bytes);
    }
    Ok(found.len())
}

fn blocks(program: &[u64], marker: [u64; 2]) -> impl Iterator<Item = usize> {
    let pairs = program.windows(2).enumerate();
    pairs
        .filter(move |(_, pair)| **pair == marker)
        .map(|(at, _)| at)
}

fn of_length(program: &[u64], at: usize, wanted: usize) -> Result<(), PlaceError> {
    let behind = program[at + 2..].iter();
    match 2 + behind.take_while(|insn| **insn == FILLER).count() {
        present if present == wanted => Ok(()),
        present => Err(PlaceError::Length {
            at,
            present,
            wanted,
        }),
    }
}
