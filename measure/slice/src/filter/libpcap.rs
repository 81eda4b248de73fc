//! The one place that calls libpcap: its compiler of filter expressions, nothing else of it.
#![allow(unsafe_code)]
use super::classic::Insn;
use std::ffi::{CStr, c_char, c_int, c_uint};
use std::ptr::NonNull;
use std::sync::Mutex;

/// `DLT_EN10MB` and `DLT_RAW` of <https://www.tcpdump.org/linktypes.html>, as Linux numbers them.
pub(super) const DLT_EN10MB: c_int = 1;
pub(super) const DLT_RAW: c_int = 12;

/// What `ret` gives for a match; any packet is shorter.
const SNAPSHOT_LENGTH: c_int = 262_144;
const NETMASK_UNKNOWN: c_uint = 0xffff_ffff;

/// `pcap_t`, never looked into.
#[repr(C)]
struct Handle {
    _private: [u8; 0],
}

/// `struct bpf_program`.
#[repr(C)]
struct Compiled {
    len: c_uint,
    insns: *mut Insn,
}

unsafe extern "C" {
    fn pcap_open_dead(linktype: c_int, snaplen: c_int) -> *mut Handle;
    fn pcap_compile(
        handle: *mut Handle,
        program: *mut Compiled,
        expression: *const c_char,
        optimize: c_int,
        netmask: c_uint,
    ) -> c_int;
    fn pcap_geterr(handle: *mut Handle) -> *const c_char;
    fn pcap_freecode(program: *mut Compiled);
    fn pcap_close(handle: *mut Handle);
}

/// A handle on no device, closed when dropped.
struct Dead(NonNull<Handle>);

impl Drop for Dead {
    fn drop(&mut self) {
        // SAFETY: the handle came from `pcap_open_dead` and is closed here only.
        unsafe { pcap_close(self.0.as_ptr()) }
    }
}

/// libpcap looks up names through functions of the C library that keep their answer in a static
/// buffer (`getprotobyname`, `ether_hostton`).
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// # Errors
/// libpcap's own words.
pub(super) fn compile(expression: &CStr, linktype: c_int) -> Result<Vec<Insn>, String> {
    let _alone = ONE_AT_A_TIME
        .lock()
        .unwrap_or_else(|dead| dead.into_inner());
    // SAFETY: takes two numbers; null when out of memory.
    let handle = unsafe { pcap_open_dead(linktype, SNAPSHOT_LENGTH) };
    let handle = Dead(NonNull::new(handle).ok_or("out of memory")?);
    let mut compiled = Compiled {
        len: 0,
        insns: std::ptr::null_mut(),
    };
    // SAFETY: the handle is open, the expression ends with NUL and is only read, `compiled` is a
    // `struct bpf_program` to be written; none is kept after the call.
    let status = unsafe {
        pcap_compile(
            handle.0.as_ptr(),
            &mut compiled,
            expression.as_ptr(),
            1,
            NETMASK_UNKNOWN,
        )
    };
    if status != 0 {
        // SAFETY: the handle is open; the text is in it, ends with NUL, and is copied before it closes.
        let said = unsafe { CStr::from_ptr(pcap_geterr(handle.0.as_ptr())) };
        return Err(said.to_string_lossy().into_owned());
    }
    let insns = match NonNull::new(compiled.insns) {
        None => Vec::new(),
        // SAFETY: the call succeeded, so `insns` is an array of `len` `struct bpf_insn`, whose layout
        // `Insn` has; it is copied before it is freed.
        Some(first) => unsafe {
            std::slice::from_raw_parts(first.as_ptr(), compiled.len as usize).to_vec()
        },
    };
    // SAFETY: what a successful compilation allocated, freed once.
    unsafe { pcap_freecode(&mut compiled) };
    Ok(insns)
}

/// libpcap's own interpreter, which the tests compare ours with.
#[cfg(test)]
pub(super) fn interpret(insns: &[Insn], packet: &[u8], wire_len: u32) -> u32 {
    unsafe extern "C" {
        fn bpf_filter(
            insns: *const Insn,
            packet: *const u8,
            wire: c_uint,
            present: c_uint,
        ) -> c_uint;
        fn bpf_validate(insns: *const Insn, len: c_int) -> c_int;
    }
    // SAFETY: pointer and length of one slice, only read.
    let valid = unsafe { bpf_validate(insns.as_ptr(), insns.len() as c_int) };
    assert_ne!(valid, 0, "libpcap does not take {insns:?}");
    // SAFETY: libpcap has checked the program; pointer and length of one slice of bytes, only read.
    unsafe {
        bpf_filter(
            insns.as_ptr(),
            packet.as_ptr(),
            wire_len,
            packet.len() as c_uint,
        )
    }
}
