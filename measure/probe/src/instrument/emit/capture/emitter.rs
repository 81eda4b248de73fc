//! What all captures are made of: saved registers, slots, records.
use super::super::probe::{self, LEA_RSP_DOWN, LEA_RSP_UP, Live, ProbeConfig, Site};
use super::super::slow::Slow;
use crate::instrument::asm::{Asm, Label, Zone};
use crate::instrument::capture::{Capture, Reg, Source};
use crate::locate::FrameAddress;
use hopscope_event::layout::SLOTS_AT;
use hopscope_event::record::{
    FunctionId, LAP_FIRST, LAP_STEP, Record, RecordKind, STRIDE, id_kind,
};
use hopscope_event::value::place;
use iced_x86::code_asm::*;
use std::mem::offset_of;

/// Pushed registers, and what else lies below them.
pub(super) struct Frame {
    pub(super) pushed: Vec<Reg>,
    /// Bytes between the last of `pushed` and rsp.
    pub(super) below: u32,
    /// Bytes between the first of `pushed` and the rsp of the function.
    pub(super) above: u32,
}

impl Frame {
    pub(super) fn slot(&self, reg: Reg) -> Option<u32> {
        let at = self.pushed.iter().rposition(|r| *r == reg)?;
        Some(self.below + 8 * (self.pushed.len() - 1 - at) as u32)
    }

    pub(super) fn depth(&self) -> u32 {
        self.below + 8 * self.pushed.len() as u32 + self.above
    }
}

/// Stands for the flags among the pushed registers.
pub(super) const FLAGS: Reg = Reg(0xff);

pub(super) struct Emitter<'a> {
    pub(super) asm: &'a mut Asm,
    pub(super) zone: Zone,
    pub(super) config: &'a ProbeConfig,
    pub(super) copy: Option<Label>,
    pub(super) frame: Frame,
    pub(super) function: FunctionId,
}

pub(super) fn r64(reg: Reg) -> AsmRegister64 {
    [
        rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15,
    ][reg.0 as usize]
}

/// Instructions without labels.
pub(super) fn code(
    asm: &mut Asm,
    zone: Zone,
    write: impl Fn(&mut CodeAssembler) -> Result<(), IcedError>,
) {
    let mut code = CodeAssembler::new(64).expect("64 bits are supported");
    write(&mut code).expect("operands are of these instructions");
    let bytes = code.assemble(0).expect("no labels");
    asm.bytes(zone, &bytes);
}

impl<'a> Emitter<'a> {
    pub(super) fn new(
        asm: &'a mut Asm,
        zone: Zone,
        config: &'a ProbeConfig,
        copy: Option<Label>,
        function: FunctionId,
    ) -> Emitter<'a> {
        Emitter {
            asm,
            zone,
            config,
            copy,
            frame: Frame {
                pushed: Vec::new(),
                below: 0,
                above: 0,
            },
            function,
        }
    }

    /// Instructions without labels.
    pub(super) fn code(&mut self, write: impl Fn(&mut CodeAssembler) -> Result<(), IcedError>) {
        code(self.asm, self.zone, write);
    }

    /// Saves what is used; the ring is in r8 afterwards.
    pub(super) fn begin(&mut self, site: &Site, pushed: &[Reg], slow: Slow, done: Label) {
        if let FrameAddress::Rsp(above) = site.position {
            self.frame.above = above as u32;
        }
        if site.red_zone {
            self.asm.bytes(self.zone, LEA_RSP_DOWN);
            self.frame.above += 128;
        }
        probe::save(self.asm, self.zone, Live::ALL);
        self.frame.pushed = vec![Reg::RAX, FLAGS, Reg::RCX, Reg::RDX];
        for reg in pushed {
            self.code(|c| c.push(r64(*reg)));
            self.frame.pushed.push(*reg);
        }
        probe::ring(self.asm, self.zone, slow.of(site.kind), done);
        self.code(|c| c.mov(r8, rcx));
    }

    pub(super) fn end(&mut self, site: &Site, done: Label) {
        if self.frame.below > 0 {
            let below = self.frame.below as i32;
            self.code(|c| c.lea(rsp, rsp + below));
            self.frame.below = 0;
        }
        self.asm.bind(self.zone, done);
        for reg in self.frame.pushed.split_off(4).into_iter().rev() {
            self.code(|c| c.pop(r64(reg)));
        }
        probe::restore(self.asm, self.zone, Live::ALL);
        if site.red_zone {
            self.asm.bytes(self.zone, LEA_RSP_UP);
        }
    }

    pub(super) fn clock(&mut self) {
        self.config.clock(self.asm, self.zone);
    }

    /// r8 = ring, edx = bytes. Leaves the counter in rdx.
    pub(super) fn reserve(&mut self) {
        self.code(|c| c.xadd(qword_ptr(r8), rdx));
    }

    /// rcx = the slot that r9 counts, rdx = its lap.
    pub(super) fn slot(&mut self) {
        let log2 = self.config.ring_records_log2 + STRIDE.ilog2();
        let mask = ((1u64 << log2) - STRIDE as u64) as u32;
        self.code(|c| {
            c.mov(rdx, r9)?;
            c.mov(ecx, r9d)?;
            c.shr(rdx, log2)?;
            c.and(ecx, mask as i32)?;
            c.add(rcx, r8)
        });
    }

    /// Stores the kind, `word` and edx, in the order of the protocol; the next slot follows.
    pub(super) fn store(&mut self, kind: RecordKind, word: AsmRegister64) {
        let id_kind = id_kind(self.function, kind);
        let mut last = edx;
        if kind == RecordKind::Entry {
            self.code(|c| c.mov(r10d, edx));
            last = r10d;
            self.clock();
            self.code(|c| {
                c.shl(rdx, 32)?;
                c.or(rax, rdx)
            });
        }
        self.code(|c| {
            // Zeros in the stack word.
            c.mov(
                qword_ptr(rcx + field(offset_of!(Record, id_kind))),
                id_kind as i32,
            )?;
            c.mov(qword_ptr(rcx + field(offset_of!(Record, tsc))), word)?;
            c.mov(dword_ptr(rcx + field(offset_of!(Record, stack))), last)?;
            c.add(r9, STRIDE as i32)
        });
    }

    pub(super) fn record(&mut self, kind: RecordKind, word: AsmRegister64) {
        let depth = self.frame.depth() as i32 + LAP_FIRST as i32;
        self.slot();
        self.code(|c| c.lea(edx, rsp + rdx * LAP_STEP + depth));
        self.store(kind, word);
    }

    /// rax = the value, extended. `element`: the register that holds its index, already shifted.
    pub(super) fn value(&mut self, capture: &Capture, element: Option<AsmRegister64>) {
        self.slot();
        let place = (place(capture.entry.capture, 0) + LAP_FIRST) as i32;
        let top = capture.scalar.may_be_negative();
        self.code(|c| {
            c.lea(edx, rdx * LAP_STEP + place)?;
            if let Some(element) = element {
                c.add(rdx, element)?;
            }
            if top {
                // Bit 63 to bit 3.
                c.mov(r10, rax)?;
                c.shr(r10, 60)?;
                c.and(r10d, 8)?;
                c.add(edx, r10d)?;
            }
            c.lea(rax, rax + rax + 1)
        });
        self.store(RecordKind::Value, rax);
    }

    /// Those among them, in the slots that r9 counts.
    pub(super) fn counters(&mut self, captures: &[Capture]) {
        for capture in captures {
            if let Source::Counter(read) = capture.source {
                self.counter(capture, read);
            }
        }
    }

    /// rax = a word that is no value.
    pub(super) fn absent(&mut self, capture: &Capture, element: Option<AsmRegister64>) {
        self.slot();
        let place = (place(capture.entry.capture, 0) + LAP_FIRST) as i32;
        self.code(|c| {
            c.lea(edx, rdx * LAP_STEP + place)?;
            match element {
                Some(element) => c.add(rdx, element),
                None => Ok(()),
            }
        });
        self.store(RecordKind::Value, rax);
    }
}

/// Offset of a field of the slot whose place from the ring header is in a register.
pub(super) fn field(at: usize) -> i32 {
    (SLOTS_AT + at) as i32
}
