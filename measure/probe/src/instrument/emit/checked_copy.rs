//! Reading memory that may not be there: the kernel copies (`process_vm_readv` on the process
//! itself), and where nothing is mapped it says so instead of raising a signal.
use crate::instrument::asm::{Asm, Label, Zone};
use iced_x86::code_asm::*;
use nix::libc;

/// Emits the routine. In: rax = address, edx = length (1 to 8). Out: edx = 0 and rax = the bytes,
/// zero-extended; or edx = 1. Clobbers rcx, r11 (as system calls do), r10 and the flags.
/// `pid` is the target's in its own pid namespace; when its main thread is gone, the kernel no
/// longer finds memory there, and the calling thread's number does.
pub fn routine(asm: &mut Asm, entry: Label, pid: i32) {
    let z = Zone::Cold;
    asm.align(z, 16, 0xcc);
    asm.bind(z, entry);
    let bytes = assemble(pid).expect("operands are of these instructions");
    asm.bytes(z, &bytes);
}

fn assemble(pid: i32) -> Result<Vec<u8>, IcedError> {
    let mut c = CodeAssembler::new(64)?;
    let (mut call, mut failed, mut out) = (c.create_label(), c.create_label(), c.create_label());
    c.push(rsi)?;
    c.push(rdi)?;
    c.push(r8)?;
    c.push(r9)?;
    // The copy, zero beyond its length; then struct iovec {address, length}: remote, local.
    c.push(0)?;
    c.mov(rcx, rsp)?;
    c.push(rdx)?;
    c.push(rax)?;
    c.mov(r10, rsp)?;
    c.push(rdx)?;
    c.push(rcx)?;
    c.mov(rsi, rsp)?;
    c.mov(edi, pid)?;
    c.set_label(&mut call)?;
    c.mov(edx, 1)?;
    c.mov(r8d, 1)?;
    c.xor(r9d, r9d)?;
    c.mov(eax, libc::SYS_process_vm_readv as u32)?;
    c.syscall()?;
    c.cmp(rax, qword_ptr(rsp + 8))?;
    c.jne(failed)?;
    c.xor(edx, edx)?;
    c.set_label(&mut out)?;
    c.mov(rax, qword_ptr(rsp + 32))?;
    c.lea(rsp, rsp + 40)?;
    c.pop(r9)?;
    c.pop(r8)?;
    c.pop(rdi)?;
    c.pop(rsi)?;
    c.ret()?;

    c.set_label(&mut failed)?;
    c.cmp(rax, -libc::ESRCH)?;
    c.mov(edx, 1)?;
    c.jne(out)?;
    // The thread itself is never gone; when it is not found either, the answer is the same.
    c.cmp(edi, pid)?;
    c.jne(out)?;
    c.mov(eax, libc::SYS_gettid as u32)?;
    c.syscall()?;
    c.mov(edi, eax)?;
    c.cmp(edi, pid)?;
    c.jne(call)?;
    c.mov(edx, 1)?;
    c.jmp(out)?;
    c.assemble(0)
}
