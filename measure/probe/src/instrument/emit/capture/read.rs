//! From where a value is to the register that is stored.
use super::emitter::{Emitter, r64};
use crate::instrument::asm::Label;
use crate::instrument::capture::{Array, Bound, Capture, Chain, Reg, Scalar};
use hopscope_event::CaptureMethod;
use hopscope_event::value::{Content, place};
use iced_x86::code_asm::*;

const UNREADABLE: u32 = Content::Unreadable.word() as u32;
const LEFT_OUT: i32 = Content::LeftOut { elements: 0 }.word() as i32;
const ELEMENT_SHIFT: u32 = place(0, 1).ilog2();
/// In place of a number of elements: its memory could not be read.
const NO_NUMBER: i32 = -1;

impl Emitter<'_> {
    /// rax = the register as the function has it.
    pub(super) fn register(&mut self, reg: Reg) {
        match self.frame.slot(reg) {
            Some(at) => self.code(|c| c.mov(rax, qword_ptr(rsp + at as i32))),
            None => self.code(|c| c.mov(rax, r64(reg))),
        }
    }

    /// Extends the low bytes of rax.
    pub(super) fn extend(&mut self, scalar: Scalar) {
        if scalar.swapped {
            self.code(|c| match scalar.bytes {
                2 => c.rol(ax, 8),
                4 => c.bswap(eax),
                8 => c.bswap(rax),
                _ => Ok(()),
            });
        }
        self.code(|c| match (scalar.bytes, scalar.signed) {
            (1, false) => c.movzx(eax, al),
            (1, true) => c.movsx(rax, al),
            (2, false) => c.movzx(eax, ax),
            (2, true) => c.movsx(rax, ax),
            (4, false) => c.mov(eax, eax),
            (4, true) => c.movsxd(rax, eax),
            _ => Ok(()),
        });
    }

    /// rax = what lies at the address rax; goes to `fault` when nothing does.
    pub(super) fn load(&mut self, scalar: Scalar, method: CaptureMethod, fault: Label) {
        if method == CaptureMethod::PlainLoad {
            self.code(|c| match scalar.bytes {
                1 => c.movzx(eax, byte_ptr(rax)),
                2 => c.movzx(eax, word_ptr(rax)),
                4 => c.mov(eax, dword_ptr(rax)),
                _ => c.mov(rax, qword_ptr(rax)),
            });
        } else {
            let copy = self
                .copy
                .expect("a segment with checked copies has the routine");
            let bytes = u32::from(scalar.bytes);
            self.code(|c| c.mov(edx, bytes));
            self.asm.rel32(self.zone, &[0xe8], copy, &[]);
            self.code(|c| c.test(edx, edx));
            self.asm.rel32(self.zone, &[0x0f, 0x85], fault, &[]);
        }
        self.extend(scalar);
    }

    /// rax = the address at the end of the chain, or the register where it has no offsets.
    pub(super) fn address(&mut self, chain: &Chain, method: CaptureMethod, fault: Label) {
        self.register(chain.base);
        for (n, offset) in chain.offsets.iter().enumerate() {
            if n > 0 {
                self.load(Scalar::WORD, method, fault);
            }
            self.add(*offset);
        }
    }

    pub(super) fn add(&mut self, offset: i32) {
        if offset != 0 {
            self.code(|c| c.add(rax, offset));
        }
    }

    /// rax = the scalar at the end of the chain.
    pub(super) fn scalar(
        &mut self,
        chain: &Chain,
        scalar: Scalar,
        method: CaptureMethod,
        fault: Label,
    ) {
        self.address(chain, method, fault);
        match chain.offsets.is_empty() {
            true => self.extend(scalar),
            false => self.load(scalar, method, fault),
        }
    }

    /// Pushes how many elements the array has and how many of them are stored; adds to r9 the slots
    /// that this takes. A number that cannot be read is [`NO_NUMBER`].
    pub(super) fn count(&mut self, capture: &Capture, array: &Array) {
        let (fault, few, counted) = (self.asm.label(), self.asm.label(), self.asm.label());
        let method = capture.entry.method;
        match &array.to {
            Bound::Number(n) => self.code(|c| c.mov(rax, *n)),
            Bound::Value { at, scalar } => {
                self.scalar(at, *scalar, method, fault);
                if scalar.signed {
                    // Fewer than none are none.
                    self.code(|c| {
                        c.xor(ecx, ecx)?;
                        c.test(rax, rax)?;
                        c.cmovs(rax, rcx)
                    });
                }
            }
        }
        let most = i32::from(capture.entry.elements_max);
        self.code(|c| {
            c.push(rax)?;
            c.cmp(rax, most)
        });
        self.asm.rel32(self.zone, &[0x0f, 0x86], few, &[]); // jbe
        self.code(|c| {
            c.mov(eax, most)?;
            c.inc(r9)
        });
        self.asm.bind(self.zone, few);
        self.code(|c| {
            c.push(rax)?;
            c.add(r9, rax)
        });
        if method == CaptureMethod::CheckedCopy {
            self.asm.rel32(self.zone, &[0xe9], counted, &[]);
            self.asm.bind(self.zone, fault);
            self.code(|c| {
                c.push(NO_NUMBER)?;
                c.push(0)?;
                c.inc(r9)
            });
            self.asm.bind(self.zone, counted);
        }
        self.frame.below += 16;
    }

    /// Stores the elements that were counted at `pushed` (bytes below the saved registers): rsi is
    /// the index, rdi the element's address.
    pub(super) fn elements(&mut self, capture: &Capture, array: &Array, pushed: u32) {
        let method = capture.entry.method;
        let checked = method == CaptureMethod::CheckedCopy;
        let (total, count) = (
            (self.frame.below - pushed - 8) as i32,
            (self.frame.below - pushed - 16) as i32,
        );
        let labels = [(); 6].map(|()| self.asm.label());
        let [nowhere, each, fault, next, end, done] = labels;
        self.address(&array.start, method, nowhere);
        self.code(|c| {
            c.mov(rdi, rax)?;
            c.xor(esi, esi)
        });
        self.asm.bind(self.zone, each);
        self.code(|c| c.cmp(rsi, qword_ptr(rsp + count)));
        self.asm.rel32(self.zone, &[0x0f, 0x83], end, &[]); // jae
        self.code(|c| c.mov(rax, rdi));
        for offset in &array.tail {
            self.load(Scalar::WORD, method, fault);
            self.add(*offset);
        }
        self.load(capture.scalar, method, fault);
        self.code(shifted_index);
        self.value(capture, Some(r11));
        self.asm.bind(self.zone, next);
        let stride = array.stride;
        self.code(|c| {
            c.mov(eax, stride)?;
            c.add(rdi, rax)?;
            c.inc(rsi)
        });
        self.asm.rel32(self.zone, &[0xe9], each, &[]);
        if checked {
            self.asm.bind(self.zone, fault);
            self.code(shifted_index);
            self.code(|c| c.mov(eax, UNREADABLE));
            self.absent(capture, Some(r11));
            self.asm.rel32(self.zone, &[0xe9], next, &[]);
            // No element can be read either: no address of user space has this bit.
            self.asm.bind(self.zone, nowhere);
            self.code(|c| {
                c.mov(rdi, 1u64 << 63)?;
                c.xor(esi, esi)
            });
            self.asm.rel32(self.zone, &[0xe9], each, &[]);
        }
        self.asm.bind(self.zone, end);
        let most = i32::from(capture.entry.elements_max);
        let (whole, known) = (self.asm.label(), self.asm.label());
        self.code(|c| {
            c.mov(rax, qword_ptr(rsp + total))?;
            c.cmp(rax, most)
        });
        self.asm.rel32(self.zone, &[0x0f, 0x86], whole, &[]); // jbe
        self.code(|c| c.cmp(rax, NO_NUMBER));
        self.asm.rel32(self.zone, &[0x0f, 0x85], known, &[]); // jne
        self.code(|c| {
            c.xor(r11d, r11d)?;
            c.mov(eax, UNREADABLE)
        });
        self.absent(capture, Some(r11));
        self.asm.rel32(self.zone, &[0xe9], done, &[]);
        self.asm.bind(self.zone, known);
        self.code(|c| {
            c.shl(rax, 8)?;
            c.or(rax, LEFT_OUT)?;
            c.mov(r11d, (most as u32) << ELEMENT_SHIFT)
        });
        self.absent(capture, Some(r11));
        self.asm.bind(self.zone, whole);
        self.asm.bind(self.zone, done);
    }

    /// Evaluates and stores a capture that is no array.
    pub(super) fn capture(&mut self, capture: &Capture, chain: &Chain) {
        let (fault, done) = (self.asm.label(), self.asm.label());
        self.scalar(chain, capture.scalar, capture.entry.method, fault);
        self.value(capture, None);
        if capture.entry.method == CaptureMethod::CheckedCopy {
            self.asm.rel32(self.zone, &[0xe9], done, &[]);
            self.asm.bind(self.zone, fault);
            self.code(|c| c.mov(eax, UNREADABLE));
            self.absent(capture, None);
            self.asm.bind(self.zone, done);
        }
    }
}

/// r11 = the index in rsi, at its place in the record.
fn shifted_index(c: &mut CodeAssembler) -> Result<(), IcedError> {
    c.mov(r11, rsi)?;
    c.shl(r11, ELEMENT_SHIFT)
}
