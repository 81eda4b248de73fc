//! dprintf(3) and its variants, which write within libc.
use super::files::write;
use super::real;
use crate::table::{self, Entry};
use nix::libc::{self, c_char, c_int, c_void};

/// A va_list where it is an argument: a pointer (System V ABI for x86-64, 3.5.7).
type Arguments = *mut c_void;

unsafe extern "C-unwind" {
    fn __vasprintf_chk(
        text: *mut *mut c_char,
        flag: c_int,
        format: *const c_char,
        arguments: Arguments,
    ) -> c_int;
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn __vdprintf_chk(
    fd: c_int,
    flag: c_int,
    format: *const c_char,
    arguments: Arguments,
) -> c_int {
    if matches!(
        table::get(fd),
        Entry::Kernel | Entry::Internal | Entry::KernelEpoll(_)
    ) {
        // SAFETY: as libc's.
        return unsafe { real::__vdprintf_chk(fd, flag, format, arguments) };
    }
    let mut text = std::ptr::null_mut();
    // SAFETY: as libc's.
    let len = unsafe { __vasprintf_chk(&mut text, flag, format, arguments) };
    let Ok(all) = usize::try_from(len) else {
        return -1;
    };
    let mut done = 0;
    while done < all {
        // SAFETY: the text is that long.
        let written = unsafe { write(fd, text.byte_add(done).cast(), all - done) };
        let Ok(written) = usize::try_from(written) else {
            break;
        };
        done += written;
    }
    // SAFETY: it was allocated above; free keeps errno (glibc 2.33 and later).
    unsafe { libc::free(text.cast()) };
    if done == all { len } else { -1 }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn vdprintf(
    fd: c_int,
    format: *const c_char,
    arguments: Arguments,
) -> c_int {
    // SAFETY: as libc's. Without the checks of _FORTIFY_SOURCE.
    unsafe { __vdprintf_chk(fd, 0, format, arguments) }
}

/// Saves the registers that arguments may be in, as a function with "..." does, and calls `$list` with a va_list behind its `$named`
/// arguments. A thread may be cancelled within.
macro_rules! variadic {
    ($name:ident, $named:literal, $list_register:literal, $list:ident) => {
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C-unwind" fn $name() -> c_int {
            std::arch::naked_asm!(
                ".cfi_startproc",
                "sub rsp, 0xd8",
                ".cfi_def_cfa_offset 0xe0",
                "mov [rsp + 0x20], rdi",
                "mov [rsp + 0x28], rsi",
                "mov [rsp + 0x30], rdx",
                "mov [rsp + 0x38], rcx",
                "mov [rsp + 0x40], r8",
                "mov [rsp + 0x48], r9",
                "test al, al",
                "je 2f",
                "movaps [rsp + 0x50], xmm0",
                "movaps [rsp + 0x60], xmm1",
                "movaps [rsp + 0x70], xmm2",
                "movaps [rsp + 0x80], xmm3",
                "movaps [rsp + 0x90], xmm4",
                "movaps [rsp + 0xa0], xmm5",
                "movaps [rsp + 0xb0], xmm6",
                "movaps [rsp + 0xc0], xmm7",
                "2:",
                "mov dword ptr [rsp], 8 * {named}",
                "mov dword ptr [rsp + 4], 48",
                "lea rax, [rsp + 0xe0]",
                "mov [rsp + 8], rax",
                "lea rax, [rsp + 0x20]",
                "mov [rsp + 16], rax",
                concat!("mov ", $list_register, ", rsp"),
                "call {list}",
                "add rsp, 0xd8",
                ".cfi_def_cfa_offset 8",
                "ret",
                ".cfi_endproc",
                named = const $named,
                list = sym $list,
            )
        }
    };
}

variadic!(dprintf, 2, "rdx", vdprintf);
variadic!(__dprintf_chk, 3, "rcx", __vdprintf_chk);
