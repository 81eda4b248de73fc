//! Straight-line instructions of every kind that moving a body could get wrong, and many more.
//! `%rdi` points at memory and `%r15` counts a loop: both stay as they are.
use super::random::Random;

/// Names of the free registers in 8, 16, 32 and 64 bits.
const REGISTERS: [[&str; 4]; 13] = [
    ["%al", "%ax", "%eax", "%rax"],
    ["%cl", "%cx", "%ecx", "%rcx"],
    ["%dl", "%dx", "%edx", "%rdx"],
    ["%bl", "%bx", "%ebx", "%rbx"],
    ["%bpl", "%bp", "%ebp", "%rbp"],
    ["%sil", "%si", "%esi", "%rsi"],
    ["%r8b", "%r8w", "%r8d", "%r8"],
    ["%r9b", "%r9w", "%r9d", "%r9"],
    ["%r10b", "%r10w", "%r10d", "%r10"],
    ["%r11b", "%r11w", "%r11d", "%r11"],
    ["%r12b", "%r12w", "%r12d", "%r12"],
    ["%r13b", "%r13w", "%r13d", "%r13"],
    ["%r14b", "%r14w", "%r14d", "%r14"],
];
const SUFFIXES: [&str; 4] = ["b", "w", "l", "q"];
const CONDITIONS: [&str; 16] = [
    "o", "no", "b", "ae", "e", "ne", "be", "a", "s", "ns", "p", "np", "l", "ge", "le", "g",
];

pub(super) fn register(random: &mut Random, size: usize) -> &'static str {
    random.of(&REGISTERS)[size]
}

pub(super) fn condition(random: &mut Random) -> &'static str {
    random.of(&CONDITIONS)
}

/// In the memory that `%rdi` points at, or in the program's own, relative to `%rip`.
fn memory(random: &mut Random) -> String {
    match random.one_in(3) {
        true => format!("own_memory+{}(%rip)", random.below(1024 - 64)),
        false => format!("{}(%rdi)", random.below(4096 - 64)),
    }
}

fn immediate(random: &mut Random, size: usize) -> i64 {
    let value = random.next() as i64;
    match (size, random.one_in(2)) {
        (0, _) | (_, true) => value as i8 as i64,
        (1, _) => value as i16 as i64,
        _ => value as i32 as i64,
    }
}

/// One or a few instructions that belong together, a line each.
pub(super) fn straight(random: &mut Random) -> String {
    let size = random.below(4);
    let suffix = SUFFIXES[size];
    let (a, b) = (register(random, size), register(random, size));
    match random.below(20) {
        0..=2 => {
            let name = random.of(&[
                "add", "sub", "and", "or", "xor", "adc", "sbb", "cmp", "test",
            ]);
            format!("{name}{suffix} {a}, {b}")
        }
        3 | 4 => {
            let name = random.of(&["add", "sub", "and", "or", "xor", "adc", "sbb", "cmp", "mov"]);
            format!("{name}{suffix} ${}, {a}", immediate(random, size))
        }
        5 => format!("mov{suffix} {}, {a}", memory(random)),
        6 => format!("mov{suffix} {a}, {}", memory(random)),
        7 => {
            let name = random.of(&["add", "sub", "xor", "cmp", "adc"]);
            format!("{name}{suffix} {}, {a}", memory(random))
        }
        8 => {
            // A displacement relative to rip with an immediate behind it.
            let name = random.of(&["add", "and", "cmp", "mov", "or"]);
            let value = immediate(random, size);
            format!("{name}{suffix} ${value}, {}", memory(random))
        }
        9 => {
            let name = random.of(&["shl", "shr", "sar", "rol", "ror", "rcl", "rcr"]);
            match random.one_in(3) {
                true => format!("{name}{suffix} %cl, {a}"),
                false => format!("{name}{suffix} ${}, {a}", 1 + random.below(7)),
            }
        }
        10 => format!("set{} {}", condition(random), register(random, 0)),
        11 => {
            let size = size.max(1);
            let (a, b) = (register(random, size), register(random, size));
            format!("cmov{}{} {a}, {b}", condition(random), SUFFIXES[size])
        }
        12 => wide(random),
        13 => vector(random),
        14 => address(random),
        15 => flags(random),
        16 => stack(random),
        17 => locked(random),
        18 => strings(random),
        _ => floating(random),
    }
}

/// What divisions and multiplications leave undefined in the flags is defined behind them.
fn wide(random: &mut Random) -> String {
    let (a, b) = (register(random, 3), register(random, 3));
    match random.below(6) {
        0 => format!("imulq {a}, {b}\ntestq {b}, {b}"),
        1 => {
            let (by, of) = (immediate(random, 3), memory(random));
            format!("imulq ${by}, {of}, {b}\ntestq {b}, {b}")
        }
        2 => format!("mulq {a}\ntestq %rdx, %rdx"),
        3 => format!(
            "xor %edx, %edx\nmov {}, %r8d\nor $1, %r8d\ndivq %r8\ntestq %rax, %rax",
            register(random, 2)
        ),
        4 => format!("bswapq {a}"),
        _ => format!("movabsq ${}, {a}", random.next() as i64),
    }
}

fn vector(random: &mut Random) -> String {
    let (a, b) = (random.below(16), random.below(16));
    match random.below(6) {
        0 => format!("movdqu {}, %xmm{a}", memory(random)),
        1 => format!("movdqu %xmm{a}, {}", memory(random)),
        2 => {
            let name = random.of(&["paddd", "pxor", "psubq", "pand", "punpckldq", "pcmpgtd"]);
            format!("{name} %xmm{a}, %xmm{b}")
        }
        3 => format!("pshufd ${}, %xmm{a}, %xmm{b}", random.below(256)),
        4 => format!("movq {}, %xmm{a}", register(random, 3)),
        _ => format!(
            "cvtsi2sdq {}, %xmm{a}\nucomisd constants(%rip), %xmm{a}",
            register(random, 3)
        ),
    }
}

fn address(random: &mut Random) -> String {
    let (a, b, c) = (
        register(random, 3),
        register(random, 3),
        register(random, 3),
    );
    let scale = 1 << random.below(4);
    match random.below(4) {
        0 => format!("leaq {}({a},{b},{scale}), {c}", immediate(random, 2)),
        1 => format!("andl $63, {0}\nmovq (%rdi,{a},8), {c}", as_long(a)),
        2 => {
            let d = as_long(a);
            format!("andl $255, {d}\nmovzbl 64(%rdi,{a},{scale}), {d}\nmovsbq 8(%rdi,{a}), {c}")
        }
        // Where something lies is the same in every run of the program; how far two things lie
        // apart is the same in all.
        _ => format!("leaq constants(%rip), {c}\nmovq 8({c}), {c}"),
    }
}

fn as_long(quad: &str) -> &'static str {
    let row = REGISTERS.iter().find(|row| row[3] == quad);
    row.map_or("%eax", |row| row[2])
}

fn flags(random: &mut Random) -> String {
    match random.below(6) {
        0 => random.of(&["stc", "clc", "cmc"]).to_owned(),
        1 => "lahf".to_owned(),
        2 => "sahf".to_owned(),
        3 => format!("pushfq\npopq {}", register(random, 3)),
        4 => format!("btq ${}, {}", random.below(64), register(random, 3)),
        _ => format!(
            "orl $1, {0}\nbsfl {0}, {1}",
            register(random, 2),
            register(random, 2)
        ),
    }
}

fn stack(random: &mut Random) -> String {
    let (a, b) = (register(random, 3), register(random, 3));
    let at = 8 * (1 + random.below(15));
    match random.below(3) {
        0 => format!("pushq {a}\nmovq (%rsp), {b}\npopq {a}"),
        1 => format!("subq $40, %rsp\nmovq {a}, 16(%rsp)\naddq 16(%rsp), {b}\naddq $40, %rsp"),
        // The red zone: 128 bytes below the stack pointer (psABI 3.2.2).
        _ => {
            let middle = register(random, 2);
            format!("movq {a}, -{at}(%rsp)\nincl {middle}\nxorq -{at}(%rsp), {b}")
        }
    }
}

fn locked(random: &mut Random) -> String {
    let (place, a) = (memory(random), register(random, 3));
    match random.below(4) {
        0 => format!("lock addq {a}, {place}"),
        1 => format!("lock xaddq {a}, {place}"),
        2 => format!("xchgq {a}, {place}"),
        _ => format!("lock cmpxchgq {a}, {place}"),
    }
}

fn strings(random: &mut Random) -> String {
    let count = 1 + random.below(31);
    let what = match random.below(3) {
        0 => "rep stosb",
        1 => "rep movsb",
        _ => "repe cmpsb",
    };
    let (to, from) = (random.below(2048), random.below(2048));
    format!(
        "movq %rdi, %r14\nleaq {from}(%rdi), %rsi\naddq ${to}, %rdi\nmovl ${count}, %ecx\n{what}\n\
         subq %r14, %rsi\nmovq %r14, %rdi\nmovl $1, %r14d"
    )
}

fn floating(random: &mut Random) -> String {
    let at = random.below(512) * 8;
    match random.below(3) {
        0 => format!("fld1\nfldpi\nfaddp\nfstpl {at}(%rdi)"),
        1 => format!("fildq {at}(%rdi)\nfsqrt\nfistpll {at}(%rdi)"),
        _ => format!(
            "movsd constants+16(%rip), %xmm7\nmulsd constants(%rip), %xmm7\nmovsd %xmm7, {at}(%rdi)"
        ),
    }
}
