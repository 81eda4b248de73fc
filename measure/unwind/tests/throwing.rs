//! Exceptions thrown through copies, by the unwinder and the personality routine of GCC.
#[allow(dead_code, reason = "each test uses a part")]
mod support;

use hopscope_unwind::{Module, Piece, Tables};
use iced_x86::{
    BlockEncoder, BlockEncoderOptions, Code, Decoder, DecoderOptions, Instruction,
    InstructionBlock, Mnemonic, Register,
};
use object::{Object, ObjectSymbol};
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Output};
use support::copy::Copy;
use support::{Memory, compile};

/// As near to the program, which does not move, as hopscope's segments are.
const BASE: u64 = 0x2000_0000;
const NAMES: [&str; 7] = [
    "copied_catches",
    "copied_rethrows",
    "copied_specified",
    "copied_cleans",
    "copied_grows",
    "copied_split",
    "copied_never",
];

/// A function's part with what stands for each of its instructions.
struct Part {
    original: Range<u64>,
    instructions: Vec<Instruction>,
    /// For each of those, whether it was there before.
    own: Vec<bool>,
}

impl Part {
    fn read(memory: &Memory, original: Range<u64>, is_entry: bool) -> Part {
        let code = &memory.at(original.start).unwrap()[..(original.end - original.start) as usize];
        let mut part = Part {
            original: original.clone(),
            instructions: Vec::new(),
            own: Vec::new(),
        };
        if is_entry {
            part.probe();
        }
        for instruction in &mut Decoder::with_ip(64, code, original.start, DecoderOptions::NONE) {
            if instruction.mnemonic() == Mnemonic::Ret {
                part.probe();
            } else if part.instructions.len().is_multiple_of(3) {
                part.insert(Instruction::with(Code::Nopd));
            }
            part.instructions.push(instruction);
            part.own.push(true);
        }
        part
    }

    /// In two, as compilers do with cold code: the second lies elsewhere, and the first leads there.
    fn split(mut self) -> [Part; 2] {
        let own: Vec<usize> = (0..self.own.len()).filter(|n| self.own[*n]).collect();
        let first = own.len() / 2;
        let at = self.instructions[own[first]].ip();
        // With what was inserted before it.
        let middle = own[first - 1] + 1;
        let second = Part {
            original: at..self.original.end,
            instructions: self.instructions.split_off(middle),
            own: self.own.split_off(middle),
        };
        self.original.end = at;
        self.insert(Instruction::with_branch(Code::Jmp_rel32_64, at).unwrap());
        [self, second]
    }

    fn probe(&mut self) {
        self.insert(Instruction::with1(Code::Push_r64, Register::RAX).unwrap());
        self.insert(Instruction::with1(Code::Pop_r64, Register::RAX).unwrap());
    }

    fn insert(&mut self, mut instruction: Instruction) {
        // No branch leads there.
        instruction.set_ip(!0 - 16 * self.original.end - self.instructions.len() as u64);
        self.instructions.push(instruction);
        self.own.push(false);
    }
}

/// A function in the segment.
struct Copied {
    code: Vec<u8>,
    pieces: Vec<Copy>,
}

/// `at`: offset in the segment.
fn copied(parts: &[Part], at: u64) -> Copied {
    // Parts lie apart, so that the lengths of branches between them do not matter; the first last, so that landing pads lie before the calls.
    const ROOM: u64 = 0x2000;
    let place = |n: usize| at + (parts.len() - 1 - n) as u64 * ROOM;
    let blocks: Vec<InstructionBlock> = parts
        .iter()
        .enumerate()
        .map(|(n, p)| InstructionBlock::new(&p.instructions, BASE + place(n)))
        .collect();
    let options = BlockEncoderOptions::RETURN_NEW_INSTRUCTION_OFFSETS;
    let encoded = BlockEncoder::encode_slice(64, &blocks, options).unwrap();
    let mut made = Copied {
        code: Vec::new(),
        pieces: Vec::new(),
    };
    for (n, part) in parts.iter().enumerate() {
        let base = place(n);
        // They come in the order of their addresses.
        let block = encoded.iter().find(|b| b.rip == BASE + base).unwrap();
        let offset = |n: usize| base + u64::from(block.new_instruction_offsets[n]);
        let (mut map, mut pushed, mut begin) = (Vec::new(), Vec::new(), None);
        for (i, instruction) in part.instructions.iter().enumerate() {
            begin = begin.or(Some(offset(i)));
            match instruction.mnemonic() {
                Mnemonic::Push if !part.own[i] => pushed.push((offset(i + 1), 8)),
                Mnemonic::Pop if !part.own[i] => pushed.push((offset(i + 1), 0)),
                _ => {}
            }
            if part.own[i] {
                map.push((instruction.ip(), begin.take().unwrap()));
            }
        }
        made.pieces.push(Copy {
            original: part.original.clone(),
            copy: base..base + block.code_buffer.len() as u64,
            map,
            pushed,
            apart: Vec::new(),
        });
        let (from, len) = ((base - at) as usize, block.code_buffer.len());
        made.code.resize(made.code.len().max(from + len), 0xcc);
        made.code[from..from + len].copy_from_slice(&block.code_buffer);
    }
    made
}

fn run(program: &Path, arguments: &[String]) -> Output {
    let out = Command::new(program).args(arguments).output().unwrap();
    assert!(out.status.success(), "{arguments:?} {out:?}");
    out
}

/// What it printed, and how many calls came from the copies.
fn told(out: &Output) -> (String, u64) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&out.stdout), text(&out.stderr).trim().parse().unwrap())
}

fn through_copies(level: &str) {
    let flags = ["-w", "-std=c++14", level, "-no-pie", "-fno-pic"];
    let program = compile("g++", "throwing.cc", &format!("throwing{level}"), &flags);
    let data = std::fs::read(&program).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let memory = Memory::of_file(&file);
    let module = Module::read(&file, 0).unwrap();
    let (mut segment, mut tables, mut offsets) = (Vec::new(), Tables::new(), Vec::new());
    let mut split = 0;
    for name in NAMES {
        let named = |name: &str| {
            let symbol = file.symbols().find(|s| s.name() == Ok(name))?;
            Some(symbol.address()..symbol.address() + symbol.size())
        };
        let whole = Part::read(&memory, named(name).unwrap(), true);
        let mut parts = Vec::from(whole.split());
        if let Some(cold) = named(&format!("{name}.cold")) {
            parts.push(Part::read(&memory, cold, false));
            split += 1;
        }
        let ranges: Vec<_> = parts.iter().map(|p| p.original.clone()).collect();
        assert_eq!(module.check(&ranges), Ok(()));
        let at = segment.len() as u64;
        let made = copied(&parts, at);
        let pieces: Vec<Piece> = made.pieces.iter().map(|c| c.piece(&[])).collect();
        assert_eq!(tables.add(&module, &pieces), Ok(()));
        offsets.push(format!("{:#x}", pieces[0].copy.start));
        segment.extend(&made.code);
        segment.resize(segment.len().next_multiple_of(64), 0xcc);
    }
    assert!(level == "-O0" || split > 0, "no function is split");
    let at = segment.len() as u64;
    let bytes = tables.finish(at).unwrap();
    // The header's way to .eh_frame, from its own place.
    let way = u32::from_le_bytes(bytes[4..8].try_into().unwrap());
    let eh_frame = at + 4 + u64::from(way);
    segment.extend(bytes);
    let path = program.with_extension("segment");
    std::fs::write(&path, &segment).unwrap();
    let mut arguments = vec![
        path.display().to_string(),
        format!("{BASE:#x}"),
        format!("{eh_frame:#x}"),
    ];
    arguments.extend(offsets);

    for mode in ["all", "terminate"] {
        let (originals, in_copies): (Vec<String>, Vec<String>) = match mode {
            "all" => (Vec::new(), arguments.clone()),
            mode => (
                vec![mode.into()],
                [vec![mode.into()], arguments.clone()].concat(),
            ),
        };
        let (expected, none) = told(&run(&program, &originals));
        let (found, some) = told(&run(&program, &in_copies));
        assert_eq!(found, expected, "{level} {mode}");
        assert!(none == 0 && some > 0, "{level} {mode}: {some} from copies");
    }
}

#[test]
fn exceptions_take_the_same_way_through_copies() {
    for level in ["-O0", "-O2"] {
        through_copies(level);
    }
}
