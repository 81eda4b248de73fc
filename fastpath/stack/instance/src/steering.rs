//! [`flow_hash`](hopscope_stack_engine::wire::flow_hash) as a program of classic BPF, so that the kernel gives a packet to the engine that
//! has its connection. What it gives to another one is passed on in memory (`share`), as are errors and what several need.
use hopscope_netio::FilterStep;
use hopscope_stack_engine::wire::flow_hash::{MULTIPLIER, SEED, SHIFT};
use hopscope_stack_engine::wire::protocol;

// linux/bpf_common.h, linux/filter.h.
const LOAD_WORD: u16 = 0x20;
const LOAD_HALF: u16 = 0x28;
const LOAD_BYTE: u16 = 0x30;
const LOAD_WORD_BEHIND_X: u16 = 0x40;
const LOAD_NUMBER: u16 = 0x00;
/// X = 4 * (the byte's lower half): the length of IPv4's header.
const X_HEADER_LEN: u16 = 0xb1;
const X_STORED: u16 = 0x61;
const STORE: u16 = 0x02;
const MULTIPLY: u16 = 0x24;
const SHIFT_RIGHT: u16 = 0x74;
const XOR_X: u16 = 0xac;
const X_IS_A: u16 = 0x07;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_ANY: u16 = 0x45;
const RETURN_NUMBER: u16 = 0x06;
const RETURN_A: u16 = 0x16;
/// Behind the Ethernet header, wherever a driver has it.
const NET: u32 = -0x10_0000_i32 as u32;
const ETHER_TYPE: u32 = -0x1000_i32 as u32;

const IPV4: u32 = 0x0800;
const IPV6: u32 = 0x86dd;
const TCP: u32 = protocol::TCP as u32;
const UDP: u32 = protocol::UDP as u32;

/// Returns 0, which is the first engine, for whatever is no segment, nor a datagram where those have engines by their flow.
pub(crate) fn program(datagrams_at_first: bool) -> Vec<FilterStep> {
    let mut v4 = Vec::new();
    v4.push(step(LOAD_BYTE, NET + 9));
    unless_of_a_flow(&mut v4, datagrams_at_first);
    v4.push(step(LOAD_HALF, NET + 6));
    // A fragment.
    v4.extend([jump(JUMP_IF_ANY, 0x3fff, 0, 1), step(RETURN_NUMBER, 0)]);
    let ports = [step(X_HEADER_LEN, NET), step(LOAD_WORD_BEHIND_X, NET)];
    hash(&mut v4, [12, 16], &ports);
    let mut v6 = Vec::new();
    v6.push(step(LOAD_BYTE, NET + 6));
    unless_of_a_flow(&mut v6, datagrams_at_first);
    let addresses = [8, 12, 16, 20, 24, 28, 32, 36];
    hash(&mut v6, addresses, &[step(LOAD_WORD, NET + 40)]);
    let mut program = vec![
        step(LOAD_WORD, ETHER_TYPE),
        jump(JUMP_IF_EQUAL, IPV4, 0, v4.len() as u8),
    ];
    program.extend(v4);
    program.extend([jump(JUMP_IF_EQUAL, IPV6, 1, 0), step(RETURN_NUMBER, 0)]);
    program.extend(v6);
    program
}

fn unless_of_a_flow(program: &mut Vec<FilterStep>, datagrams_at_first: bool) {
    match datagrams_at_first {
        true => program.push(jump(JUMP_IF_EQUAL, TCP, 1, 0)),
        false => program.extend([
            jump(JUMP_IF_EQUAL, TCP, 2, 0),
            jump(JUMP_IF_EQUAL, UDP, 1, 0),
        ]),
    }
    program.push(step(RETURN_NUMBER, 0));
}

/// Of the words at these places of the packet, and of its ports.
fn hash<const N: usize>(program: &mut Vec<FilterStep>, words: [u32; N], ports: &[FilterStep]) {
    program.extend([step(LOAD_NUMBER, SEED), step(STORE, 0)]);
    for at in words {
        program.push(step(LOAD_WORD, NET + at));
        program.extend(mixed_in());
    }
    program.extend(ports);
    program.extend(mixed_in());
    program.push(step(LOAD_NUMBER, 0));
    program.extend(mixed_in());
    program.push(step(RETURN_A, 0));
}

/// What is in A, into the hash, which is in the first place of memory, and in A.
fn mixed_in() -> [FilterStep; 7] {
    [
        step(X_STORED, 0),
        step(XOR_X, 0),
        step(MULTIPLY, MULTIPLIER),
        step(X_IS_A, 0),
        step(SHIFT_RIGHT, SHIFT),
        step(XOR_X, 0),
        step(STORE, 0),
    ]
}

const fn step(code: u16, k: u32) -> FilterStep {
    jump(code, k, 0, 0)
}

const fn jump(code: u16, k: u32, jt: u8, jf: u8) -> FilterStep {
    FilterStep { code, jt, jf, k }
}
