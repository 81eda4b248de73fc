//! Programs on a device, a few instructions each, loaded with bpf(2). Each is attached by a link, so it leaves the device with the last
//! descriptor, however the process ends. The XDP program that hands a queue's frames to a socket.
use super::socket::check;
use nix::libc;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

// From linux/bpf.h.
const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE: libc::c_int = 2;
const PROG_LOAD: libc::c_int = 5;
const LINK_CREATE: libc::c_int = 28;
const MAP_TYPE_XSKMAP: u32 = 17;
const PROG_TYPE_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
const FUNC_REDIRECT_MAP: i32 = 51;
const XDP_PASS: i32 = 2;
const PSEUDO_MAP_FD: u8 = 1;
/// `xdp_md.rx_queue_index`
const RX_QUEUE_INDEX: i16 = 16;

/// In generic mode, after the kernel made an skb; else in the driver.
pub(crate) const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
pub(crate) const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;

/// `union bpf_attr` as the four commands here read it; the kernel takes the rest for zero.
#[repr(C)]
struct MapCreate {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
}

#[repr(C)]
struct MapUpdate {
    map_fd: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct ProgLoad {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
}

#[repr(C)]
struct LinkCreate {
    prog_fd: u32,
    target_ifindex: u32,
    attach_type: u32,
    flags: u32,
}

/// `struct bpf_insn`; registers: destination in the low nibble.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Instruction {
    pub code: u8,
    pub registers: u8,
    pub offset: i16,
    pub immediate: i32,
}

pub(super) fn instruction(code: u8, registers: u8, offset: i16, immediate: i32) -> Instruction {
    Instruction {
        code,
        registers,
        offset,
        immediate,
    }
}

/// Loads `program`, and attaches it to a device; it is there as long as the link.
pub(super) fn attach(
    program: &[Instruction],
    prog_type: u32,
    interface: u32,
    (attach_type, flags): (u32, u32),
) -> io::Result<OwnedFd> {
    let load = ProgLoad {
        prog_type,
        insn_cnt: program.len() as u32,
        insns: program.as_ptr() as u64,
        license: c"Dual MIT/GPL".as_ptr() as u64,
    };
    // SAFETY: program and licence live over the call and are as long as said.
    let program = unsafe { OwnedFd::from_raw_fd(bpf(PROG_LOAD, &load)?) };
    let link = LinkCreate {
        prog_fd: program.as_raw_fd() as u32,
        target_ifindex: interface,
        attach_type,
        flags,
    };
    // SAFETY: the attribute of this command, without pointers.
    Ok(unsafe { OwnedFd::from_raw_fd(bpf(LINK_CREATE, &link)?) })
}

/// # Safety
/// `attribute` must be what `command` expects, and what it points to must live.
unsafe fn bpf<T>(command: libc::c_int, attribute: &T) -> io::Result<libc::c_int> {
    let attribute = std::ptr::from_ref(attribute);
    // SAFETY: `size_of::<T>()` bytes can be read at `attribute`; the rest is the caller's promise.
    check(unsafe { libc::syscall(libc::SYS_bpf, command, attribute, size_of::<T>()) } as i32)
}

/// Attached as long as it lives.
pub(crate) struct Redirect {
    _link: OwnedFd,
}

impl Redirect {
    /// From now on the frames of `queue` come to `socket`; those of other queues pass.
    pub(crate) fn attach(
        interface: u32,
        queue: u32,
        socket: BorrowedFd<'_>,
        flags: u32,
    ) -> io::Result<Redirect> {
        let create = MapCreate {
            map_type: MAP_TYPE_XSKMAP,
            key_size: 4,
            value_size: 4,
            max_entries: queue + 1,
        };
        // SAFETY: the attribute of this command, without pointers; the descriptor is ours alone.
        let map = unsafe { OwnedFd::from_raw_fd(bpf(MAP_CREATE, &create)?) };
        let socket = socket.as_raw_fd();
        let update = MapUpdate {
            map_fd: map.as_raw_fd() as u32,
            padding: 0,
            key: &raw const queue as u64,
            value: &raw const socket as u64,
            flags: 0,
        };
        // SAFETY: key and value are four bytes each and live over the call.
        unsafe { bpf(MAP_UPDATE, &update)? };
        let program = [
            // r2 = context->rx_queue_index
            instruction(0x61, 0x12, RX_QUEUE_INDEX, 0),
            // r1 = map, in two slots
            instruction(0x18, PSEUDO_MAP_FD << 4 | 1, 0, map.as_raw_fd()),
            instruction(0, 0, 0, 0),
            // r3 = what to do with frames of queues that are not in the map
            instruction(0xb7, 0x03, 0, XDP_PASS),
            instruction(0x85, 0, 0, FUNC_REDIRECT_MAP),
            instruction(0x95, 0, 0, 0),
        ];
        let link = attach(&program, PROG_TYPE_XDP, interface, (ATTACH_XDP, flags))?;
        // The link keeps the program, and that keeps the map.
        Ok(Redirect { _link: link })
    }
}
