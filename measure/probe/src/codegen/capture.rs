//! Probes that take values along.
//!
//! All slots of a probe are reserved by one `xadd`, so that what a signal handler's probes store
//! comes before or after them: the reader finds the values of an entry right behind its record,
//! those of a return right before the exit's. Registers: r8 = ring header, r9 = counter of the
//! slot to be stored, rax = the value; rcx, rdx, r10 are scratch. The entry's clock is read last,
//! the exit's first, so that the time of a call does not contain its captures.
use super::asm::{Asm, Label, Zone};
use super::probe::{self, LEA_RSP_DOWN, LEA_RSP_UP, Live, ProbeConfig, Site};
use crate::capture::{Array, Bound, Capture, Chain, Reg, Scalar, Source};
use hopscope_event::CaptureMethod;
use hopscope_event::layout::RING_HEADER_BYTES;
use hopscope_event::record::{FunctionId, Kind, Record, STRIDE, id_kind};
use hopscope_event::value::{Content, place};
use iced_x86::code_asm::*;
use std::mem::offset_of;

const UNREADABLE: u32 = Content::Unreadable.word() as u32;
const LEFT_OUT: i32 = Content::LeftOut { elements: 0 }.word() as i32;
const ELEMENT_SHIFT: u32 = place(0, 1).ilog2();
/// In place of a number of elements: its memory could not be read.
const NO_NUMBER: i32 = -1;

/// What a captured probe is made with beside its site.
#[derive(Clone, Copy)]
pub struct Captured<'a> {
    pub captures: &'a [Capture],
    /// [`super::copy::routine`]; there when a capture needs it.
    pub copy: Option<Label>,
}

/// Pushed registers, and what else lies below them.
struct Frame {
    pushed: Vec<Reg>,
    /// Bytes between the last of `pushed` and rsp.
    below: u32,
    /// Bytes between the first of `pushed` and the rsp of the function.
    above: u32,
}

impl Frame {
    fn slot(&self, reg: Reg) -> Option<u32> {
        let at = self.pushed.iter().rposition(|r| *r == reg)?;
        Some(self.below + 8 * (self.pushed.len() - 1 - at) as u32)
    }

    fn depth(&self) -> u32 {
        self.below + 8 * self.pushed.len() as u32 + self.above
    }
}

/// Stands for the flags among the pushed registers.
const FLAGS: Reg = Reg(0xff);

struct Emitter<'a> {
    asm: &'a mut Asm,
    zone: Zone,
    config: &'a ProbeConfig,
    copy: Option<Label>,
    frame: Frame,
    function: FunctionId,
}

fn r64(reg: Reg) -> AsmRegister64 {
    [
        rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11, r12, r13, r14, r15,
    ][reg.0 as usize]
}

impl Emitter<'_> {
    /// Instructions without labels.
    fn code(&mut self, write: impl Fn(&mut CodeAssembler) -> Result<(), IcedError>) {
        let mut code = CodeAssembler::new(64).expect("64 bits are supported");
        write(&mut code).expect("operands are of these instructions");
        let bytes = code.assemble(0).expect("no labels");
        self.asm.bytes(self.zone, &bytes);
    }

    /// Saves what is used; the ring is in r8 afterwards.
    fn begin(&mut self, site: &Site, pushed: &[Reg], slow: Label, done: Label) {
        if site.red_zone {
            self.asm.bytes(self.zone, LEA_RSP_DOWN);
            self.frame.above = 128;
        }
        probe::save(self.asm, self.zone, Live::ALL);
        self.frame.pushed = vec![Reg::RAX, FLAGS, Reg::RCX, Reg::RDX];
        for reg in pushed {
            self.code(|c| c.push(r64(*reg)));
            self.frame.pushed.push(*reg);
        }
        probe::ring(self.asm, self.zone, slow, done);
        self.code(|c| c.mov(r8, rcx));
    }

    fn end(&mut self, site: &Site, done: Label) {
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

    /// r8 = ring, edx = bytes. Leaves the counter in rdx.
    fn reserve(&mut self) {
        self.code(|c| c.xadd(qword_ptr(r8), rdx));
    }

    /// rcx = the slot that r9 counts, edx = its lap; its time stamp is zeroed.
    fn slot(&mut self) {
        let log2 = self.config.ring_records_log2 + STRIDE.ilog2();
        let mask = ((1u64 << log2) - STRIDE as u64) as u32;
        self.code(|c| {
            c.mov(rdx, r9)?;
            c.mov(ecx, r9d)?;
            c.shr(rdx, log2)?;
            c.and(ecx, mask as i32)?;
            c.add(rcx, r8)?;
            c.mov(qword_ptr(rcx + field(offset_of!(Record, tsc))), 0)
        });
    }

    /// Stores edx and the kind, and last `word`; the next slot follows.
    fn store(&mut self, kind: Kind, word: AsmRegister64) {
        let id_kind = id_kind(self.function, kind);
        self.code(|c| {
            c.mov(dword_ptr(rcx + field(offset_of!(Record, stack))), edx)?;
            c.mov(dword_ptr(rcx + field(offset_of!(Record, id_kind))), id_kind)?;
            if kind == Kind::Entry {
                c.rdtsc()?;
                c.shl(rdx, 32)?;
                c.or(rax, rdx)?;
            }
            c.mov(qword_ptr(rcx + field(offset_of!(Record, tsc))), word)?;
            c.add(r9, STRIDE as i32)
        });
    }

    fn record(&mut self, kind: Kind, word: AsmRegister64) {
        let depth = self.frame.depth() as i32;
        self.slot();
        self.code(|c| c.lea(edx, rsp + rdx + depth));
        self.store(kind, word);
    }

    /// rax = the value, extended. `element`: the register that holds its index, already shifted.
    fn value(&mut self, capture: &Capture, element: Option<AsmRegister64>) {
        self.slot();
        let place = place(capture.entry.capture, 0) as i32;
        let top = capture.scalar.may_be_negative();
        self.code(|c| {
            c.lea(edx, rdx + place)?;
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
        self.store(Kind::Value, rax);
    }

    /// rax = a word that is no value.
    fn absent(&mut self, capture: &Capture, element: Option<AsmRegister64>) {
        self.slot();
        let place = place(capture.entry.capture, 0) as i32;
        self.code(|c| {
            c.lea(edx, rdx + place)?;
            match element {
                Some(element) => c.add(rdx, element),
                None => Ok(()),
            }
        });
        self.store(Kind::Value, rax);
    }

    /// rax = the register as the function has it.
    fn register(&mut self, reg: Reg) {
        match self.frame.slot(reg) {
            Some(at) => self.code(|c| c.mov(rax, qword_ptr(rsp + at as i32))),
            None => self.code(|c| c.mov(rax, r64(reg))),
        }
    }

    /// Extends the low bytes of rax.
    fn extend(&mut self, scalar: Scalar) {
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
    fn load(&mut self, scalar: Scalar, method: CaptureMethod, fault: Label) {
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
    fn address(&mut self, chain: &Chain, method: CaptureMethod, fault: Label) {
        self.register(chain.base);
        for (n, offset) in chain.offsets.iter().enumerate() {
            if n > 0 {
                self.load(Scalar::WORD, method, fault);
            }
            self.add(*offset);
        }
    }

    fn add(&mut self, offset: i32) {
        if offset != 0 {
            self.code(|c| c.add(rax, offset));
        }
    }

    /// rax = the scalar at the end of the chain.
    fn scalar(&mut self, chain: &Chain, scalar: Scalar, method: CaptureMethod, fault: Label) {
        self.address(chain, method, fault);
        match chain.offsets.is_empty() {
            true => self.extend(scalar),
            false => self.load(scalar, method, fault),
        }
    }

    /// Pushes how many elements the array has and how many of them are stored; adds to r9 the slots
    /// that this takes. A number that cannot be read is [`NO_NUMBER`].
    fn count(&mut self, capture: &Capture, array: &Array) {
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
    fn elements(&mut self, capture: &Capture, array: &Array, pushed: u32) {
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
    fn capture(&mut self, capture: &Capture, chain: &Chain) {
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

/// Offset of a field of the slot whose place from the ring header is in a register.
fn field(at: usize) -> i32 {
    (RING_HEADER_BYTES + at) as i32
}

fn emitter<'a>(
    asm: &'a mut Asm,
    zone: Zone,
    config: &'a ProbeConfig,
    copy: Option<Label>,
    function: FunctionId,
) -> Emitter<'a> {
    let frame = Frame {
        pushed: Vec::new(),
        below: 0,
        above: 0,
    };
    Emitter {
        asm,
        zone,
        config,
        copy,
        frame,
        function,
    }
}

/// An entry probe and the values captured there.
pub fn entry(
    asm: &mut Asm,
    zone: Zone,
    config: &ProbeConfig,
    slow: Label,
    site: Site,
    captured: Captured<'_>,
) {
    let done = asm.label();
    let mut e = emitter(asm, zone, config, captured.copy, site.function);
    e.begin(
        &site,
        &[Reg::RSI, Reg::RDI, Reg::R8, Reg::R9, Reg::R10, Reg::R11],
        slow,
        done,
    );
    let arrays = |c: &&Capture| matches!(c.source, Source::Array(_));
    let slots = 1 + captured.captures.len() - captured.captures.iter().filter(arrays).count();
    e.code(|c| c.mov(r9d, slots as u32));
    let mut pushed = Vec::new();
    for capture in captured.captures {
        pushed.push(e.frame.below);
        if let Source::Array(array) = &capture.source {
            e.count(capture, array);
        }
    }
    e.code(|c| {
        c.mov(rdx, r9)?;
        c.shl(rdx, STRIDE.ilog2())
    });
    e.reserve();
    // The entry's own slot is stored last.
    e.code(|c| {
        c.push(rdx)?;
        c.lea(r9, rdx + STRIDE as i32)
    });
    e.frame.below += 8;
    for (capture, pushed) in captured.captures.iter().zip(pushed) {
        match &capture.source {
            Source::Scalar(chain) => e.capture(capture, chain),
            Source::Array(array) => e.elements(capture, array, pushed),
            Source::Return => {}
        }
    }
    e.code(|c| c.mov(r9, qword_ptr(rsp)));
    e.record(Kind::Entry, rax);
    e.end(&site, done);
}

/// An exit probe and the values captured there, which are in rax.
pub fn exit(
    asm: &mut Asm,
    zone: Zone,
    config: &ProbeConfig,
    slow: Label,
    site: Site,
    captured: Captured<'_>,
) {
    let done = asm.label();
    let mut e = emitter(asm, zone, config, None, site.function);
    e.begin(&site, &[Reg::R8, Reg::R9, Reg::R10, Reg::R11], slow, done);
    let slots = 1 + captured.captures.len();
    e.code(|c| {
        c.rdtsc()?;
        c.shl(rdx, 32)?;
        c.lea(r11, rdx + rax)?;
        c.mov(edx, (slots * STRIDE) as u32)
    });
    e.reserve();
    e.code(|c| c.mov(r9, rdx));
    for capture in captured.captures {
        e.register(Reg::RAX);
        e.extend(capture.scalar);
        e.value(capture, None);
    }
    e.record(site.kind, r11);
    e.end(&site, done);
}

/// One value that an instruction of the body has just loaded into a register.
pub fn body(
    asm: &mut Asm,
    zone: Zone,
    config: &ProbeConfig,
    slow: Label,
    function: FunctionId,
    capture: &Capture,
    loaded: Reg,
) {
    let site = Site {
        function,
        kind: Kind::Value,
        live: Live::ALL,
        red_zone: true,
    };
    let done = asm.label();
    let mut e = emitter(asm, zone, config, None, function);
    e.begin(&site, &[Reg::R8, Reg::R9, Reg::R10], slow, done);
    e.code(|c| c.mov(edx, STRIDE as u32));
    e.reserve();
    e.code(|c| c.mov(r9, rdx));
    e.register(loaded);
    e.extend(capture.scalar);
    e.value(capture, None);
    e.end(&site, done);
}
