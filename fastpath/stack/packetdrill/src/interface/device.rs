//! The device and the clock, as packetdrill calls them.
use crate::blocking::shared;
use hopscope_stack_engine::Ns;
use nix::libc::{self, c_int, c_void};

/// How long a script may wait for a packet, as virtual time goes: longer than any retransmission.
const PACKET_LIMIT: Ns = Ns::from_ms(400_000);

pub unsafe extern "C" fn netdev_send(_: *mut c_void, packet: *const c_void, count: usize) -> c_int {
    // SAFETY: packetdrill's packet has `count` bytes.
    let packet = unsafe { std::slice::from_raw_parts(packet.cast::<u8>(), count) };
    shared().call(|stack| stack.receive(packet));
    0
}

pub unsafe extern "C" fn netdev_receive(
    _: *mut c_void,
    into: *mut c_void,
    count: *mut usize,
    time_us: *mut i64,
) -> c_int {
    let packet = shared().next_packet(PACKET_LIMIT);
    // A failure would be tried again for ever: without a packet the count is 0.
    let (at, packet) = packet.unwrap_or_default();
    // SAFETY: `count` says how many bytes `into` has, and all three may be written.
    unsafe {
        let length = packet.len().min(*count);
        into.cast::<u8>()
            .copy_from_nonoverlapping(packet.as_ptr(), length);
        *count = length;
        *time_us = (at.0 / 1_000) as i64;
    }
    0
}

pub unsafe extern "C" fn usleep(_: *mut c_void, us: u32) -> c_int {
    shared().pass(Ns::from_us(u64::from(us)));
    0
}

pub unsafe extern "C" fn gettimeofday(
    _: *mut c_void,
    into: *mut libc::timeval,
    _zone: *mut c_void,
) -> c_int {
    let us = (shared().read_clock().0 / 1_000) as i64;
    // SAFETY: as libc's.
    unsafe {
        into.write(libc::timeval {
            tv_sec: us / 1_000_000,
            tv_usec: us % 1_000_000,
        })
    };
    0
}
