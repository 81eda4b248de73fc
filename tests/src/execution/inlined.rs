//! Debugging information by which random parts of generated bodies were inlined, nested and side by side: nobody has
//! looked for places that suit the probes.
use super::random::Random;
use std::fmt::Write;

/// What they are inlined from, in turn.
pub(super) const NAMES: [&str; 3] = ["inl_a", "inl_b", "inl_c"];

/// DWARF 4, sections 7.5.1 and 7.5.3: a unit, functions that were inlined, functions, places.
const ABBREVIATIONS: &str = "
.section .debug_abbrev, \"\", @progbits
.byte 1, 0x11, 1, 0, 0
.byte 2, 0x2e, 0, 0x03, 0x08, 0x20, 0x0b, 0, 0
.byte 3, 0x2e, 1, 0x11, 0x01, 0x12, 0x01, 0, 0
.byte 4, 0x1d, 1, 0x31, 0x13, 0x11, 0x01, 0x12, 0x01, 0, 0
.byte 0
.section .debug_info, \"\", @progbits
.Linfo: .long .Linfo_end - .Linfo_begin
.Linfo_begin: .value 4
.long 0
.byte 8
.byte 1
";

pub(super) fn with_places(source: &str, seed: u64) -> String {
    let mut random = Random(seed ^ 0x1d);
    let mut info = String::from(ABBREVIATIONS);
    for name in NAMES {
        let _ = write!(info, ".Lof_{name}: .byte 2\n.string \"{name}\"\n.byte 1\n");
    }
    let mut text = String::new();
    let mut body: Option<(String, Vec<&str>)> = None;
    for line in source.lines() {
        match &mut body {
            None if line.starts_with("body_") && line.ends_with(':') && !line.contains('.') => {
                text.push_str(line);
                text.push('\n');
                body = Some((line.trim_end_matches(':').to_owned(), Vec::new()));
            }
            Some((name, lines)) if line == ".cfi_endproc" => {
                place(&mut random, name, lines, &mut text, &mut info);
                text.push_str(line);
                text.push('\n');
                body = None;
            }
            Some((_, lines)) => lines.push(line),
            None => {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    text + &info + ".byte 0\n.Linfo_end:\n"
}

/// Labels between the lines of a body, and what lies between them.
fn place(random: &mut Random, name: &str, lines: &[&str], text: &mut String, info: &mut String) {
    let mut marks = vec![String::new(); lines.len() + 1];
    let _ = write!(marks[0], ".Lbegin_{name}:");
    let _ = write!(info, ".byte 3\n.quad .Lbegin_{name}, .Lend_{name}\n");
    let mut within = Within {
        random,
        name,
        marks: &mut marks,
        number: 0,
    };
    within.places(0, lines.len(), 0, info);
    info.push_str(".byte 0\n");
    for (line, marks) in lines.iter().zip(&marks) {
        let _ = writeln!(text, "{marks}\n{line}");
    }
    let _ = writeln!(text, "{}\n.Lend_{name}:", marks[lines.len()]);
}

struct Within<'a> {
    random: &'a mut Random,
    name: &'a str,
    marks: &'a mut [String],
    number: usize,
}

impl Within<'_> {
    fn places(&mut self, from: usize, to: usize, depth: usize, info: &mut String) {
        let mut at = from;
        while depth < 3 && to - at > 2 && !self.random.one_in(4) {
            let begin = at + self.random.below(to - at - 1);
            let end = begin + 1 + self.random.below(to - begin);
            self.number += 1;
            let (n, name) = (self.number, self.name);
            let _ = write!(self.marks[begin], " .Lb{n}_{name}:");
            let _ = write!(self.marks[end], " .Le{n}_{name}:");
            let of = NAMES[self.random.below(NAMES.len())];
            let _ = write!(
                info,
                ".byte 4\n.long .Lof_{of} - .Linfo\n.quad .Lb{n}_{name}, .Le{n}_{name}\n"
            );
            self.places(begin, end, depth + 1, info);
            info.push_str(".byte 0\n");
            at = end;
        }
    }
}
