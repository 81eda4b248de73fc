//! The safety net of a remote call: a signal frame from which `rt_sigreturn` puts a thread back
//! into the state in which we stopped it, should we be killed before we do that ourselves.
//!
//! Layout of `struct rt_sigframe` (arch/x86/include/asm/sigframe.h, uapi/asm/sigcontext.h).
use super::ptrace::Regs;

/// Offsets from the start of the frame, which begins with the return address.
const UCONTEXT: usize = 8;
const MCONTEXT: usize = UCONTEXT + 40;
const SIGMASK: usize = MCONTEXT + 256;
const FPSTATE_POINTER: usize = MCONTEXT + 184;
/// Rounded up from 312 bytes, past the (unused) siginfo.
const FRAME_BYTES: usize = 512;
/// Of a frame with no extended state, and as much as keeps the next one aligned.
pub const CALL_BYTES: usize = FRAME_BYTES + 64;
/// Zeros in such a frame, behind what the kernel reads.
pub const CALL_ZEROS: usize = FRAME_BYTES;
const UC_FP_XSTATE: u64 = 1;
const UC_SIGCONTEXT_SS: u64 = 2;
const UC_STRICT_RESTORE_SS: u64 = 4;
const FP_XSTATE_MAGIC1: u32 = 0x4650_5853;
const FP_XSTATE_MAGIC2: u32 = 0x4650_5845;
/// `sw_reserved` in the legacy area.
const SOFTWARE_BYTES: usize = 464;
/// End of the standard state before AMX tile data, which a thread without permission cannot have.
const BEFORE_AMX: usize = 2696;
const AMX_FEATURES: u64 = 3 << 17;

/// Bytes that a frame with this much extended state needs at most.
pub const fn needed(xstate: usize) -> usize {
    FRAME_BYTES + 64 + xstate + 4
}

/// A frame that leads to one more system call, with all signals blocked: `regs` are what it is made
/// with. Vector registers are in their initial state then.
pub fn build_call(restorer: u64, regs: &Regs) -> Vec<u8> {
    let mut frame = build_general(restorer, regs, u64::MAX, None);
    frame.resize(CALL_BYTES, 0);
    frame
}

/// A frame for address `at` (≡ 8 mod 64). The thread runs with rsp = `at`: the first 8 bytes are
/// the address that its `syscall; ret` returns to.
pub fn build(at: u64, restorer: u64, regs: &Regs, mask: u64, mut xstate: Vec<u8>) -> Vec<u8> {
    let fpstate = (at + FRAME_BYTES as u64).next_multiple_of(64);
    let mut frame = build_general(restorer, regs, mask, Some(fpstate));
    let features = u64::from_le_bytes(
        xstate[SOFTWARE_BYTES..SOFTWARE_BYTES + 8]
            .try_into()
            .expect("8 bytes"),
    );
    let in_use = u64::from_le_bytes(xstate[512..520].try_into().expect("8 bytes"));
    let amx =
        features & AMX_FEATURES != 0 && in_use & AMX_FEATURES == 0 && xstate.len() > BEFORE_AMX;
    let (features, size) = if amx {
        (features & !AMX_FEATURES, BEFORE_AMX)
    } else {
        (features, xstate.len())
    };
    xstate.truncate(size);
    let mut software = Vec::with_capacity(48);
    software.extend_from_slice(&FP_XSTATE_MAGIC1.to_le_bytes());
    software.extend_from_slice(&(size as u32 + 4).to_le_bytes());
    software.extend_from_slice(&features.to_le_bytes());
    software.extend_from_slice(&(size as u32).to_le_bytes());
    software.resize(48, 0);
    xstate[SOFTWARE_BYTES..SOFTWARE_BYTES + 48].copy_from_slice(&software);
    frame.resize((fpstate - at) as usize, 0);
    frame.extend_from_slice(&xstate);
    frame.extend_from_slice(&FP_XSTATE_MAGIC2.to_le_bytes());
    frame
}

/// Everything but the extended state.
fn build_general(restorer: u64, regs: &Regs, mask: u64, fpstate: Option<u64>) -> Vec<u8> {
    let mut frame = vec![0u8; FRAME_BYTES];
    let mut put =
        |offset: usize, value: u64| frame[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
    put(0, restorer);
    let extended = fpstate.map_or(0, |_| UC_FP_XSTATE);
    put(UCONTEXT, extended | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS);
    // uc_stack stays zero: too small to be an alternate stack, so the present one is kept.
    let r = resumable(regs);
    let general = [
        r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rdi, r.rsi, r.rbp, r.rbx, r.rdx,
        r.rax, r.rcx, r.rsp, r.rip, r.eflags,
    ];
    for (n, value) in general.into_iter().enumerate() {
        put(MCONTEXT + 8 * n, value);
    }
    put(MCONTEXT + 144, r.cs & 0xffff | (r.ss & 0xffff) << 48);
    put(FPSTATE_POINTER, fpstate.unwrap_or(0));
    put(SIGMASK, mask);
    frame
}

/// Registers as user code must see them when nobody does the kernel's restart of an interrupted
/// system call: the call is made again with its own arguments. `restart_syscall` would find its
/// state gone (`rt_sigreturn` resets it) and give EINTR; so a relative time-out starts anew.
fn resumable(regs: &Regs) -> Regs {
    // ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND, ERESTART_RESTARTBLOCK (linux/errno.h)
    const AGAIN: [i64; 4] = [-512, -513, -514, -516];
    let mut r = *regs;
    if (r.orig_rax as i64) >= 0 && AGAIN.contains(&(r.rax as i64)) {
        r.rax = r.orig_rax;
        r.rip -= 2;
    }
    r
}
