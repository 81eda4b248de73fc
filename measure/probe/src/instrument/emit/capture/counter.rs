//! A counter read without the kernel's help, as linux/perf_event.h describes it: the page of the event says where, and a
//! number in it changes whenever the kernel writes there, so a reading between two equal ones is of one piece.
//!
//! Where the page names a counter of the processor, `rdpmc` may be executed: the kernel allows it for as long as a page is
//! mapped. Where it names none (the thread's event is in error, or belongs to another thread), it is not.
use super::emitter::Emitter;
use crate::counters::counting::{INDEX_AT, LOCK_AT, OFFSET_AT};
use crate::instrument::asm::Zone;
use crate::instrument::capture::{Capture, ReadCounter, Reg};
use hopscope_event::counter::COUNT_BITS;
use hopscope_event::layout::{Context, PAGE, RingHeader};
use hopscope_event::record::{LAP_FIRST, LAP_STEP, RecordKind};
use hopscope_event::value::{Content, place};
use iced_x86::code_asm::*;
use std::mem::offset_of;

/// Saved beside those of every capture.
pub(super) const SAVED: [Reg; 2] = [Reg::RSI, Reg::RDI];

const NOT_COUNTING: u32 = Content::NotCounting.word() as u32;
const NOT_OPENED: u32 = Content::NotOpened.word() as u32;
/// The lock is even but for moments in which the thread does not run: half of it is recorded, its low 16 bits in the element.
const LOW_UPDATES: u32 = 0x1fffe;
const UPDATES_TO_ELEMENT: u32 = place(0, 1).ilog2() - 1;
const HIGH_UPDATES_FROM: u32 = 17;

impl Emitter<'_> {
    /// Reads and stores one counter in the slot that r9 counts; r8 = ring. Leaves r8 and r11 alone; rsi and rdi are free.
    pub(super) fn counter(&mut self, capture: &Capture, read: ReadCounter) {
        let [again, not_counting, not_opened, absent, done] = [(); 5].map(|()| self.asm.label());
        let field = |at: usize| (usize::from(read.number) * PAGE + at) as i32;
        let (hot, cold) = (self.zone, Zone::Stub);
        // A signal handler may have forked since the ring was found, and this be the child: it has no such pages.
        self.code(|c| c.cmp(qword_ptr(offset_of!(Context, owner) as i32).gs(), 0));
        self.asm.rel32(hot, JZ, not_opened, &[]);
        self.code(|c| {
            c.mov(rsi, qword_ptr(r8 + offset_of!(RingHeader, counters)))?;
            c.test(rsi, rsi)
        });
        self.asm.rel32(hot, JZ, not_opened, &[]);
        self.asm.bind(hot, again);
        self.code(|c| c.mov(edi, dword_ptr(rsi + field(LOCK_AT))));
        match read.software {
            true => self.code(|c| c.mov(rax, qword_ptr(rsi + field(OFFSET_AT)))),
            false => {
                self.code(|c| {
                    c.mov(ecx, dword_ptr(rsi + field(INDEX_AT)))?;
                    c.sub(ecx, 1)
                });
                self.asm.rel32(hot, JB, not_counting, &[]);
                self.asm.bytes(hot, RDPMC);
            }
        }
        self.code(|c| c.cmp(edi, dword_ptr(rsi + field(LOCK_AT))));
        self.asm.rel32(hot, JNE, again, &[]);
        match read.software {
            true => self.code(|c| {
                c.shl(rax, 64 - COUNT_BITS)?;
                c.shr(rax, 64 - COUNT_BITS)
            }),
            false => self.code(|c| {
                c.shl(rdx, 32)?;
                c.or(rax, rdx)
            }),
        }
        let number = (place(capture.entry.capture, 0) + LAP_FIRST) as i32;
        self.slot();
        self.code(|c| {
            c.mov(esi, edi)?;
            c.and(esi, LOW_UPDATES as i32)?;
            c.shl(esi, UPDATES_TO_ELEMENT)?;
            c.lea(edx, rsi + rdx * LAP_STEP + number)?;
            c.shr(edi, HIGH_UPDATES_FROM)?;
            c.shl(rdi, COUNT_BITS)?;
            c.or(rax, rdi)?;
            c.lea(rax, rax + rax + 1)
        });
        self.store(RecordKind::Value, rax);
        self.asm.bind(hot, done);

        self.zone = cold;
        self.asm.bind(cold, not_counting);
        self.code(|c| c.mov(eax, NOT_COUNTING));
        self.asm.rel32(cold, JMP, absent, &[]);
        self.asm.bind(cold, not_opened);
        self.code(|c| c.mov(eax, NOT_OPENED));
        self.asm.bind(cold, absent);
        self.slot();
        self.code(|c| c.lea(edx, rdx * LAP_STEP + number));
        self.store(RecordKind::Value, rax);
        self.asm.rel32(cold, JMP, done, &[]);
        self.zone = hot;
    }
}

const JZ: &[u8] = &[0x0f, 0x84];
const JNE: &[u8] = &[0x0f, 0x85];
const JB: &[u8] = &[0x0f, 0x82];
const JMP: &[u8] = &[0xe9];
const RDPMC: &[u8] = &[0x0f, 0x33];
