//! Instruction sequences of the target's own code that a remote call runs through. No byte of it
//! is changed.
use super::AttachError;
use super::memory::TargetMemory;
use crate::maps;
use std::ops::Range;

#[derive(Debug, Clone, Copy)]
pub struct Gadgets {
    /// `syscall; ret`
    pub syscall_ret: u64,
    /// `mov rax, 15; syscall`: what every libc gives to `rt_sigaction` as restorer
    pub sigreturn: u64,
    /// Behind it: what a seccomp filter sees as the instruction pointer.
    pub sigreturn_end: u64,
}

const SYSCALL_RET: &[u8] = &[0x0f, 0x05, 0xc3];
const SIGRETURN: [&[u8]; 2] = [
    &[0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05],
    &[0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05],
];

/// Read at once, and of one mapping at most: the target says how large it is.
const PIECE: u64 = 4 << 20;
const MAPPING_AT_MOST: u64 = 256 << 20;
/// The longest sequence, less one byte: it may lie across the end of a piece.
const OVERLAP: u64 = 8;

fn pieces(range: &Range<u64>) -> impl Iterator<Item = (u64, u64)> {
    let end = range.end.min(range.start + MAPPING_AT_MOST);
    let starts = (range.start..end).step_by(PIECE as usize);
    starts.map(move |at| (at, (at + PIECE + OVERLAP).min(end)))
}

pub fn find(pid: i32, memory: &TargetMemory) -> Result<Gadgets, AttachError> {
    let mappings = maps::read(pid).map_err(|source| AttachError::Proc { pid, source })?;
    let (mut syscall_ret, mut sigreturn) = (None, None::<(u64, u64)>);
    // libc first: it has both.
    let mut code: Vec<_> = mappings
        .iter()
        .filter(|m| m.executable && m.readable && m.name != "[vsyscall]")
        .collect();
    code.sort_by_key(|m| !(m.name.contains("libc") || m.name.contains("musl")));
    let mut bytes = Vec::new();
    for (at, end) in code.into_iter().flat_map(|m| pieces(&m.range)) {
        bytes.resize((end - at) as usize, 0);
        if memory.read(at, &mut bytes).is_err() {
            continue;
        }
        let find = |wanted: &[u8]| {
            bytes
                .windows(wanted.len())
                .position(|w| w == wanted)
                .map(|n| at + n as u64)
        };
        syscall_ret = syscall_ret.or_else(|| find(SYSCALL_RET));
        sigreturn = sigreturn.or_else(|| {
            let found = |s: &&[u8]| find(s).map(|at| (at, at + s.len() as u64));
            SIGRETURN.iter().find_map(found)
        });
        if let (Some(syscall_ret), Some((sigreturn, sigreturn_end))) = (syscall_ret, sigreturn) {
            return Ok(Gadgets {
                syscall_ret,
                sigreturn,
                sigreturn_end,
            });
        }
    }
    let what = if syscall_ret.is_none() {
        "syscall-return"
    } else {
        "signal-return"
    };
    Err(AttachError::NoGadget { pid, what })
}
