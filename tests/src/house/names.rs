//! Names come from targets, files and packets: text writers print them through what escapes them.
use super::fence::{relative, rust_files};
use anyhow::{Result, ensure};
use hopscope_tests::{Suite, repository};

/// What writers of text call things whose words are somebody else's.
const FOREIGN: &[&str] = &[
    "basename",
    "build_id",
    "comm",
    "command",
    "command_line",
    "cpu",
    "display",
    "file",
    "function",
    "host",
    "kernel",
    "module",
    "name",
    "names",
    "path",
    "program",
    "words",
];

/// What escapes, or writes for machines in quotes of its own.
const ESCAPED: &[&str] = &["printable(", "Printable", "Text(", "quoted(", "json"];

/// Files, or folders, whose plain `writeln!` prints only names of our own (counters, quantiles,
/// queues, policies) or what was escaped before it got there.
const PLAIN: &[&str] = &[
    "bench/",
    "cli/src/check.rs",
    "cli/src/check/",
    "check/src/",
    "cli/src/help/page.rs",
    "cli/src/load/serve.rs",
    "cli/src/slice/list.rs",
    "cli/src/splice/session.rs",
    "measure/session/src/attach/progress.rs",
    "measure/session/src/record/stops.rs",
    "measure/session/src/slice/stat.rs",
    "measure/session/src/top/lines.rs",
    "measure/session/src/top/save.rs",
    "cli/src/stack/",
    "cli/src/vnet/",
    "measure/report/src/",
    "measure/read/src/",
];

/// Macros that write a line, or a part of one, as it is.
const WRITERS: &[&str] = &[
    "write!(",
    "writeln!(",
    "print!(",
    "println!(",
    "eprint!(",
    "eprintln!(",
];

pub(super) fn register(suite: &mut Suite) {
    suite.case("house::names_are_printed_escaped", &[], escaped);
}

fn escaped() -> Result<()> {
    let mut files = Vec::new();
    for dir in [
        "cli/src",
        "check/src",
        "measure/read/src",
        "measure/report/src",
        "measure/session/src",
        "bench/src",
    ] {
        rust_files(&repository().join(dir), &mut files)?;
    }
    let mut plain = Vec::new();
    for file in &files {
        let path = relative(file);
        if PLAIN.iter().any(|known| path.starts_with(known)) {
            continue;
        }
        let text = std::fs::read_to_string(file)?;
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or("");
        for (line, call) in calls(code) {
            if names_something(call) && !ESCAPED.iter().any(|word| call.contains(word)) {
                plain.push(format!("{path}:{line}: {call}"));
            }
        }
    }
    ensure!(files.len() > 100, "only {} files found", files.len());
    ensure!(
        plain.is_empty(),
        "names through a plain writer; text_line!, show!, say! or printable() escape them:\n{}",
        plain.join("\n")
    );
    let summary = r#"fn f() { writeln!(out, "{functions:>9} {name}")?; }"#;
    ensure!(
        calls(summary).any(|(_, call)| names_something(call)),
        "finds none"
    );
    Ok(())
}

/// Calls of writers with what they are given, and their lines.
fn calls(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let starts = WRITERS.iter().flat_map(|writer| {
        let found = code.match_indices(writer);
        found.filter(|(at, _)| !code[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
    });
    starts.map(|(at, writer)| {
        let inside = &code[at + writer.len()..];
        let line = code[..at].matches('\n').count() + 1;
        (line, &inside[..end(inside)])
    })
}

/// Where the parenthesis is closed.
fn end(inside: &str) -> usize {
    let (mut depth, mut in_string, mut escaped) = (1, false, false);
    for (at, c) in inside.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = in_string,
            '"' => in_string = !in_string,
            '(' if !in_string => depth += 1,
            ')' if !in_string => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    inside.len()
}

/// In an argument, or between the braces of the text.
fn names_something(call: &str) -> bool {
    let (mut in_string, mut in_braces, mut code) = (false, false, String::new());
    for c in call.chars() {
        match c {
            '"' => in_string = !in_string,
            '{' if in_string => in_braces = true,
            '}' if in_string => in_braces = false,
            _ => {}
        }
        code.push(if in_string && !in_braces { ' ' } else { c });
    }
    let mut words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.any(|word| FOREIGN.contains(&word))
}
