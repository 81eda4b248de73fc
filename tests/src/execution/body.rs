//! Function bodies from a seed, as an assembler file: branches, loops, jump tables, calls, tail
//! calls, early returns and cold parts around straight-line instructions.
use super::instructions::{condition, register, straight};
use super::random::Random;
use std::fmt::Write;

/// What bodies call: one that uses few registers, as a compiler's interprocedural allocation
/// expects, one that answers in the flags, one with a frame.
const HELPERS: &str = "
helper_0:
leaq 3(%rax,%rax,2), %rax
xorq constants+8(%rip), %rax
ret
helper_1:
cmpq constants(%rip), %rax
ret
helper_2:
endbr64
pushq %rbp
movq %rsp, %rbp
subq $32, %rsp
movq %rax, -8(%rbp)
addq -8(%rbp), %rcx
lock incl own_memory(%rip)
leave
ret
";
const HELPERS_COUNT: usize = 3;

pub(super) fn name(n: u64) -> String {
    format!("body_{n:04}")
}

/// `count` functions and the table of them.
pub(super) fn source(seed: u64, count: u64) -> String {
    let mut text = String::from(".text\n");
    let mut names = Vec::new();
    for helper in HELPERS.lines().filter(|line| line.ends_with(':')) {
        names.push(helper.trim_end_matches(':').to_owned());
        let _ = writeln!(text, ".type {0}, @function", names[names.len() - 1]);
    }
    text += ".p2align 4\n";
    text += HELPERS;
    let mut table = String::new();
    for n in 0..count {
        text += &Body::new(seed, n).finish();
        let name = name(n);
        let _ = writeln!(table, ".quad {name}, name_of_{name}");
        let _ = write!(
            text,
            ".section .rodata\nname_of_{name}: .string \"{name}\"\n.text\n"
        );
    }
    let _ = write!(
        text,
        ".section .rodata\n.p2align 3\nconstants: .quad 0x400921fb54442d18, 0x123456789abcdef0, 0x3ff8000000000000\n\
         .globl bodies_count\nbodies_count: .quad {count}\n\
         .section .data.rel.ro, \"aw\"\n.p2align 3\n.globl bodies\nbodies:\n{table}\
         .bss\n.p2align 6\n.globl own_memory\nown_memory: .skip 1024\n\
         .section .note.GNU-stack, \"\", @progbits\n"
    );
    text
}

struct Body {
    random: Random,
    name: String,
    labels: usize,
    hot: String,
    cold: String,
    read_only: String,
}

impl Body {
    fn new(seed: u64, n: u64) -> Body {
        Body {
            random: Random(seed << 32 | n),
            name: name(n),
            labels: 0,
            hot: String::new(),
            cold: String::new(),
            read_only: String::new(),
        }
    }

    fn finish(mut self) -> String {
        if self.random.one_in(4) {
            self.line("endbr64");
        }
        for _ in 0..1 + self.random.below(20) {
            self.step(0);
        }
        self.leave();
        let name = &self.name;
        let mut text = format!(
            ".p2align {}\n.globl {name}\n.type {name}, @function\n{name}:\n.cfi_startproc\n{}\
             .cfi_endproc\n.size {name}, . - {name}\n",
            self.random.of(&[0, 4]),
            self.hot
        );
        if !self.cold.is_empty() {
            let _ = write!(
                text,
                ".section .text.unlikely, \"ax\"\n.type {name}.cold, @function\n{name}.cold:\n\
                 .cfi_startproc\n{}.cfi_endproc\n.size {name}.cold, . - {name}.cold\n.text\n",
                self.cold
            );
        }
        if !self.read_only.is_empty() {
            let _ = write!(
                text,
                ".section .rodata\n.p2align 3\n{}.text\n",
                self.read_only
            );
        }
        text
    }

    fn line(&mut self, line: &str) {
        self.hot += line;
        self.hot.push('\n');
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!(".L{}_{}", self.name, self.labels)
    }

    fn steps(&mut self, depth: usize) {
        for _ in 0..1 + self.random.below(4) {
            self.step(depth + 1);
        }
    }

    fn step(&mut self, depth: usize) {
        if depth >= 3 {
            let line = straight(&mut self.random);
            return self.line(&line);
        }
        match self.random.below(24) {
            0 | 1 => self.skip(depth),
            2 => self.counted_loop(depth),
            3 => self.jump_table(depth),
            4 => self.call(),
            5 => self.cold_part(),
            6 => self.leave_early(),
            7 => self.count_register(),
            _ => {
                let line = straight(&mut self.random);
                self.line(&line);
            }
        }
    }

    fn skip(&mut self, depth: usize) {
        let (over, condition) = (self.label(), condition(&mut self.random));
        self.line(&format!("j{condition} {over}"));
        self.steps(depth);
        if self.random.one_in(4) {
            // Too far for a short branch.
            self.line(&format!("jmp {over}\n.skip 200, 0x90"));
        }
        self.line(&format!("{over}:"));
    }

    fn counted_loop(&mut self, depth: usize) {
        let again = self.label();
        let times = 1 + self.random.below(5);
        // Loops nest: the outer count waits on the stack.
        self.line(&format!("pushq %r15\nmovl ${times}, %r15d\n{again}:"));
        for _ in 0..1 + self.random.below(4) {
            let line = straight(&mut self.random);
            self.line(&line);
        }
        if depth == 0 && self.random.one_in(2) {
            self.skip(2);
        }
        self.line(&format!("decl %r15d\njnz {again}\npopq %r15"));
    }

    /// As compilers make them: of offsets, or of addresses.
    fn jump_table(&mut self, depth: usize) {
        let (table, end) = (self.label(), self.label());
        let cases = 1 << (1 + self.random.below(3));
        let index = register(&mut self.random, 3);
        self.line(&format!("movq {index}, %rax\nandl ${}, %eax", cases - 1));
        let by_offset = self.random.one_in(2);
        let jump = match by_offset {
            true => "leaq {t}(%rip), %rcx\nmovslq (%rcx,%rax,4), %rax\naddq %rcx, %rax\njmp *%rax",
            false => "leaq {t}(%rip), %rcx\njmp *(%rcx,%rax,8)",
        };
        self.line(&jump.replace("{t}", &table));
        let mut rows = format!("{table}:\n");
        for _ in 0..cases {
            let case = self.label();
            self.line(&format!("{case}:"));
            self.steps(depth + 1);
            self.line(&format!("jmp {end}"));
            let _ = match by_offset {
                true => writeln!(rows, ".long {case} - {table}"),
                false => writeln!(rows, ".quad {case}"),
            };
        }
        self.line(&format!("{end}:"));
        // The address of the case is left in rax, and the table's in rcx: they differ where a
        // program is loaded elsewhere, never within one.
        self.line("xorl %eax, %eax\nxorl %ecx, %ecx");
        match by_offset {
            true => self.read_only += &rows,
            false => {
                let section = ".section .data.rel.ro, \"aw\"\n.p2align 3\n";
                let _ = writeln!(self.hot, "{section}{rows}.text");
            }
        }
    }

    fn helper(&mut self) -> String {
        format!("helper_{}", self.random.below(HELPERS_COUNT))
    }

    fn call(&mut self) {
        let helper = self.helper();
        match self.random.below(3) {
            0 => self.line(&format!(
                "leaq {helper}(%rip), %r11\ncall *%r11\nxorl %r11d, %r11d"
            )),
            // Aligned, as the ABI has it, or not.
            1 => self.line(&format!(
                "subq $8, %rsp\ncall {helper}\nadcq $0, %rcx\naddq $8, %rsp"
            )),
            _ => self.line(&format!("call {helper}")),
        }
    }

    fn cold_part(&mut self) {
        let (there, back) = (self.label(), self.label());
        let condition = condition(&mut self.random);
        self.line(&format!("j{condition} {there}\n{back}:"));
        let work = straight(&mut self.random);
        let _ = write!(self.cold, "{there}:\n{work}\njmp {back}\n");
    }

    /// A return, a tail call, or a conditional one, on one side of a branch.
    fn leave_early(&mut self) {
        let (on, condition) = (self.label(), condition(&mut self.random));
        if self.random.one_in(3) {
            let helper = self.helper();
            return self.line(&format!("j{condition} {helper}"));
        }
        self.line(&format!("j{condition} {on}"));
        self.leave();
        self.line(&format!("{on}:"));
    }

    /// Branches that have no long form.
    fn count_register(&mut self) {
        let (over, again) = (self.label(), self.label());
        let times = self.random.below(4);
        let work = register(&mut self.random, 2);
        let end = self.random.of(&["loop", "loopne", "loope"]);
        self.line(&format!(
            "movl ${times}, %ecx\njrcxz {over}\n{again}:\nincl {}\n{end} {again}\n{over}:",
            if work == "%ecx" { "%eax" } else { work }
        ));
    }

    fn leave(&mut self) {
        let helper = self.helper();
        let line = match self.random.below(6) {
            0 => format!("jmp {helper}"),
            1 => format!("leaq {helper}(%rip), %r11\njmp *%r11"),
            2 => "rep ret".to_owned(),
            _ => "ret".to_owned(),
        };
        self.line(&line);
    }
}
