//! What answers an unwinder that asks for the tables of a copy. `_dl_find_object` (glibc 2.35) is where libgcc_s and
//! what is linked with libgcc_eh look an address up, and allocates and locks nothing; here an address in one of the
//! slots is answered from the slot, any other goes on to the C library.
use hopscope_event::layout::PAGE;
use iced_x86::code_asm::*;
use std::mem::offset_of;

/// At the start of a page of the target's own that the code reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Head {
    /// Slots that are looked at. Those behind were never used.
    pub slots: u64,
    /// `struct link_map` (link.h) of no object: an address, a name that follows, nothing else.
    pub link_map: [u64; 5],
    pub name: [u8; 16],
}

/// Copies that lie together; of length 0 while nobody uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Slot {
    pub start: u64,
    pub len: u64,
    /// `.eh_frame_hdr`.
    pub tables: u64,
    pub unused: u64,
}

/// What is behind the head.
pub const SLOTS: usize = (PAGE - size_of::<Head>()) / size_of::<Slot>();
pub const LINK_MAP_AT: u64 = offset_of!(Head, link_map) as u64;
pub const NAME_AT: u64 = offset_of!(Head, name) as u64;
const SLOTS_AT: usize = size_of::<Head>();
const SLOT_BYTES: i32 = size_of::<Slot>() as i32;

pub fn slot_at(n: usize) -> u64 {
    (SLOTS_AT + n * size_of::<Slot>()) as u64
}

/// `struct dl_find_object` (dlfcn.h): what the caller has made room for.
mod found {
    pub const FLAGS: usize = 0;
    pub const MAP_START: usize = 8;
    pub const MAP_END: usize = 16;
    pub const LINK_MAP: usize = 24;
    pub const EH_FRAME: usize = 32;
}

/// What stands before the instructions of the function's entry: int _dl_find_object(void *rdi, struct
/// dl_find_object *rsi). Runs on to its end for what is in no slot; rax, rcx, rdx and the flags are free here. Its
/// length does not depend on `slots_at`.
///
/// # Panics
/// Never: the operands are of these instructions.
pub fn find_object(slots_at: u64) -> Vec<u8> {
    assemble(slots_at).expect("operands are of these instructions")
}

fn assemble(slots_at: u64) -> Result<Vec<u8>, IcedError> {
    let mut c = CodeAssembler::new(64)?;
    let (mut next, mut found, mut other) = (c.create_label(), c.create_label(), c.create_label());
    // mov rax, imm64
    c.db(&[&[0x48, 0xb8][..], &slots_at.to_le_bytes()].concat())?;
    c.mov(rcx, qword_ptr(rax + offset_of!(Head, slots)))?;
    c.add(rax, SLOTS_AT as i32)?;
    c.test(rcx, rcx)?;
    c.je(other)?;
    c.set_label(&mut next)?;
    c.mov(rdx, rdi)?;
    c.sub(rdx, qword_ptr(rax + offset_of!(Slot, start)))?;
    c.cmp(rdx, qword_ptr(rax + offset_of!(Slot, len)))?;
    c.jb(found)?;
    c.add(rax, SLOT_BYTES)?;
    c.dec(rcx)?;
    c.jne(next)?;
    c.jmp(other)?;

    c.set_label(&mut found)?;
    c.mov(qword_ptr(rsi + found::FLAGS), 0)?;
    c.mov(rdx, qword_ptr(rax + offset_of!(Slot, start)))?;
    c.mov(qword_ptr(rsi + found::MAP_START), rdx)?;
    c.add(rdx, qword_ptr(rax + offset_of!(Slot, len)))?;
    c.mov(qword_ptr(rsi + found::MAP_END), rdx)?;
    c.mov(rdx, qword_ptr(rax + offset_of!(Slot, tables)))?;
    c.mov(qword_ptr(rsi + found::EH_FRAME), rdx)?;
    c.db(&[&[0x48, 0xba][..], &(slots_at + LINK_MAP_AT).to_le_bytes()].concat())?;
    c.mov(qword_ptr(rsi + found::LINK_MAP), rdx)?;
    c.xor(eax, eax)?;
    c.ret()?;
    c.set_label(&mut other)?;
    c.nop()?;
    c.assemble(0)
}
