//! Where the stack lies that a C library made for a thread, as it notes it in the thread's control block.
//!
//! glibc (`struct pthread`: `stackblock`, `stackblock_size`) and musl (`map_base`, `map_size`) keep its lowest address
//! and its length in two words one after the other, behind the address that fs points to. Which words varies with the
//! version, so the pair is looked for: the control block lies at the top of that very stack.
use hopscope_process::memory::TargetMemory;
use std::ops::Range;

/// What is looked at of a control block: glibc's has 2,304 bytes.
const CONTROL_BLOCK: usize = 4096;
/// Between the control block's address and its stack's end: itself, musl's keys (1 KiB), alignment.
const ABOVE_AT_MOST: u64 = 16 << 10;

/// The stack with the control block at `fs_base` at its top; `None` where a C library noted none.
pub(super) fn of(memory: &TargetMemory, fs_base: u64) -> Option<Range<u64>> {
    let mut block = [0u8; CONTROL_BLOCK];
    let read = memory.read_up_to(fs_base, &mut block).ok()?;
    noted(&block[..read], fs_base)
}

fn noted(block: &[u8], fs_base: u64) -> Option<Range<u64>> {
    let words: Vec<u64> = block
        .chunks_exact(8)
        .map(|b| u64::from_le_bytes(b.try_into().expect("8 bytes")))
        .collect();
    words.windows(2).find_map(|pair| {
        let range = pair[0]..pair[0].checked_add(pair[1])?;
        let above = range.end.checked_sub(fs_base)?;
        (pair[0] < fs_base && LENGTHS.contains(&pair[1]) && (1..=ABOVE_AT_MOST).contains(&above))
            .then_some(range)
    })
}

/// Of a stack: a page to 64 GiB. Addresses lie above.
const LENGTHS: Range<u64> = 4096..64 << 30;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::thread::JoinHandleExt;

    fn block(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    #[test]
    fn the_pair_that_ends_above_the_control_block_is_it() {
        let fs = 0x7f00_0080_0000 - 0x900;
        let stack = 0x7f00_0000_0000..0x7f00_0080_0000;
        let elsewhere = [0x7e00_0000_0000, 0x80_0000];
        let words = [[fs, 0x10], elsewhere, [stack.start, 0x80_0000]].concat();
        assert_eq!(noted(&block(&words), fs), Some(stack));
    }

    #[test]
    fn where_none_is_noted_there_is_none() {
        let fs = 0x7f00_0080_0000;
        // Ends far above, ends below, wraps round.
        for pair in [
            [fs - 0x1000, 0x10_0000],
            [fs - 0x2000, 0x1000],
            [u64::MAX - 8, 0x9000],
        ] {
            assert_eq!(noted(&block(&pair), fs), None);
        }
        assert_eq!(noted(&[], fs), None);
    }

    #[test]
    fn a_thread_of_this_process_has_its_stack_noted() {
        let memory = TargetMemory::open(std::process::id() as i32).expect("its own memory");
        let (says, hears) = std::sync::mpsc::channel();
        let (ends, waits) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let local = 0u8;
            let _ = says.send(std::ptr::from_ref(&local) as u64);
            let _ = waits.recv();
        });
        let local = hears.recv().expect("a word of its stack");
        // glibc's and musl's pthread_t is the address of the control block.
        let stack = of(&memory, thread.as_pthread_t() as u64);
        drop(ends);
        thread.join().expect("joins");
        assert!(stack.is_some_and(|stack| stack.contains(&local)));
    }
}
