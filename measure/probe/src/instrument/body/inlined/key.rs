//! What copies of an instruction have in common.
use crate::locate::SourcePlace;
use iced_x86::{Code, Instruction};

/// An instruction but for its registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    from: SourcePlace,
    code: Code,
    immediate: u64,
    displacement: u64,
    scale: u32,
}

impl Key {
    pub(super) fn of(from: SourcePlace, ins: &Instruction) -> Key {
        let mut immediates = (0..ins.op_count()).filter_map(|n| ins.try_immediate(n).ok());
        Key {
            from,
            code: ins.code(),
            immediate: immediates.next_back().unwrap_or(0),
            displacement: ins.memory_displacement64(),
            scale: ins.memory_index_scale(),
        }
    }
}
