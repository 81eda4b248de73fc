//! The program that drops packets to some addresses before the kernel's IP: on tcx ingress (Linux 6.6), which is behind the packet sockets.
use super::bpf::{Instruction, attach, instruction};
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

// From linux/bpf.h.
const PROG_TYPE_SCHED_CLS: u32 = 3;
const TCX_INGRESS: u32 = 46;
const TCX_NEXT: i32 = -1;
const TCX_DROP: i32 = 2;
/// Fields of `struct __sk_buff`.
const PKT_TYPE: i16 = 4;
const PROTOCOL: i16 = 16;
const VLAN_PRESENT: i16 = 20;
/// `SKF_NET_OFF` of linux/filter.h: from the IP header on.
const NETWORK: i32 = -0x10_0000;
const DESTINATION_V4: i32 = NETWORK + 16;
const DESTINATION_V6: i32 = NETWORK + 24;

// Codes of instructions, and r0, r6 to r9.
const MOVE: u8 = 0xbf;
const MOVE_IMMEDIATE: u8 = 0xb7;
const LOAD_FIELD: u8 = 0x61;
/// `BPF_LD | BPF_ABS | BPF_W`: of the packet r6 is about, into r0; ends the program with 0, to pass, where the packet is shorter.
const LOAD_PACKET: u8 = 0x20;
/// Of 32 bits.
const JUMP_EQUAL: u8 = 0x16;
const JUMP_NOT_EQUAL: u8 = 0x56;
const EXIT: u8 = 0x95;

/// Frames for the device's own address, untagged, with a packet to one of `addresses`.
pub(crate) fn drop_packets_to(interface: u32, addresses: &[IpAddr]) -> io::Result<OwnedFd> {
    attach(
        &program(addresses),
        PROG_TYPE_SCHED_CLS,
        interface,
        (TCX_INGRESS, 0),
    )
}

fn program(addresses: &[IpAddr]) -> Vec<Instruction> {
    let mut code = vec![
        instruction(MOVE, 0x16, 0, 0),
        // PACKET_HOST is 0.
        instruction(LOAD_FIELD, 0x60, PKT_TYPE, 0),
        instruction(JUMP_EQUAL, 0, 2, 0),
        instruction(MOVE_IMMEDIATE, 0, 0, TCX_NEXT),
        instruction(EXIT, 0, 0, 0),
        instruction(LOAD_FIELD, 0x60, VLAN_PRESENT, 0),
        instruction(JUMP_EQUAL, 0, 2, 0),
        instruction(MOVE_IMMEDIATE, 0, 0, TCX_NEXT),
        instruction(EXIT, 0, 0, 0),
        instruction(LOAD_FIELD, 0x67, PROTOCOL, 0),
    ];
    let (v4, v6): (Vec<IpAddr>, Vec<IpAddr>) = addresses.iter().partition(|ip| ip.is_ipv4());
    for (of_family, protocol) in [(v4, 0x0800_u16), (v6, 0x86dd)] {
        let compared = comparisons(&of_family);
        let protocol = i32::from(protocol.to_be());
        code.push(instruction(
            JUMP_NOT_EQUAL,
            7,
            compared.len() as i16,
            protocol,
        ));
        code.extend(compared);
    }
    code.push(instruction(MOVE_IMMEDIATE, 0, 0, TCX_NEXT));
    code.push(instruction(EXIT, 0, 0, 0));
    code
}

/// Ends the program where the packet is for one of them; goes on behind it where it is not.
fn comparisons(addresses: &[IpAddr]) -> Vec<Instruction> {
    let mut code = Vec::new();
    for address in addresses {
        let (at, words) = match address {
            IpAddr::V4(v4) => (DESTINATION_V4, vec![v4.to_bits()]),
            IpAddr::V6(v6) => {
                let bits = v6.to_bits();
                let words = [bits >> 96, bits >> 64, bits >> 32, bits].map(|word| word as u32);
                (DESTINATION_V6, words.to_vec())
            }
        };
        let last = words.len() - 1;
        for (n, word) in words.into_iter().enumerate() {
            code.push(instruction(LOAD_PACKET, 0, 0, at + 4 * n as i32));
            // To the next address: the pairs that are left, and the end of this one.
            let rest = 2 * (last - n) as i16 + 2;
            code.push(instruction(JUMP_NOT_EQUAL, 0, rest, word as i32));
        }
        code.push(instruction(MOVE_IMMEDIATE, 0, 0, TCX_DROP));
        code.push(instruction(EXIT, 0, 0, 0));
    }
    code
}
