//! `hopscope functions` on the tool itself and on this very process.
use std::process::{Command, Output, Stdio};

const HOPSCOPE: &str = env!("CARGO_BIN_EXE_hopscope");

fn functions(arguments: &[&str]) -> Output {
    Command::new(HOPSCOPE)
        .arg("functions")
        .args(arguments)
        .output()
        .unwrap()
}

fn lines(output: &[u8]) -> Vec<serde_json::Value> {
    let text = std::str::from_utf8(output).unwrap();
    text.lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect()
}

/// Exit code 2, nothing on stdout, one line on stderr.
fn refused(arguments: &[&str]) -> String {
    let out = functions(arguments);
    assert_eq!(
        (out.status.code(), out.stdout.len()),
        (Some(2), 0),
        "{out:?}"
    );
    let said = String::from_utf8(out.stderr).unwrap();
    assert_eq!(said.lines().count(), 1, "{said}");
    said
}

#[test]
fn a_process_and_its_files_agree() {
    let pid = std::process::id().to_string();
    let of_process = functions(&["-p", &pid, "-f", "libc!malloc", "--json"]);
    assert!(of_process.status.success());
    let of_process = lines(&of_process.stdout);
    let path = of_process[0]["path"].as_str().unwrap();
    let of_file = lines(&functions(&["-b", path, "-f", "malloc", "--json"]).stdout);
    for field in ["name", "svma", "size", "source", "verdict"] {
        assert_eq!(of_process[0][field], of_file[0][field], "{field}");
    }
    assert_eq!(of_file[0]["address"], of_file[0]["svma"]);
    let malloc = libc_malloc as *const () as usize as u64;
    assert!(malloc > of_file[0]["svma"].as_u64().unwrap());
    assert_eq!(
        of_process[0]["address"].as_u64().unwrap() % 4096,
        malloc % 4096
    );
}

use nix::libc::malloc as libc_malloc;

#[test]
fn the_summary_counts_every_line() {
    let out = functions(&["-b", HOPSCOPE, "--json"]);
    assert!(out.status.success() && out.stderr.is_empty());
    let lines = lines(&out.stdout);
    let (summary, functions) = lines.split_last().unwrap();
    let count = |verdict| functions.iter().filter(|f| f["verdict"] == verdict).count() as u64;
    assert_eq!(summary["accepted"], count("relocate"));
    assert_eq!(summary["refused"], count("refused"));
    let classes = summary["refused_by_class"].as_object().unwrap();
    assert_eq!(
        classes.values().map(|n| n.as_u64().unwrap()).sum::<u64>(),
        count("refused")
    );
    assert!(
        functions
            .iter()
            .all(|f| (f["verdict"] == "refused") == f["reason"].is_string())
    );
    let main = functions
        .iter()
        .find(|f| f["name"] == "hopscope::main")
        .unwrap();
    assert!(main["file"].as_str().unwrap().ends_with("main.rs") && main["line"].is_u64());
}

#[test]
fn the_table_has_the_same_functions_as_the_json() {
    let table = functions(&["-b", HOPSCOPE, "-f", "hopscope::*"]);
    let table = String::from_utf8(table.stdout).unwrap();
    let json = lines(&functions(&["-b", HOPSCOPE, "-f", "hopscope::*", "--json"]).stdout);
    let rows: Vec<&str> = table.lines().filter(|l| l.starts_with("0x")).collect();
    assert_eq!(rows.len(), json.len() - 1);
    for (row, f) in rows.iter().zip(&json) {
        assert!(row.contains(f["name"].as_str().unwrap()), "{row}");
        assert!(
            row.contains("relocate") == (f["verdict"] == "relocate"),
            "{row}"
        );
    }
}

#[test]
fn what_cannot_be_listed_is_said_in_one_line() {
    assert!(refused(&["-p", "2147483647"]).contains("no process 2147483647"));
    assert!(refused(&["-b", "/etc/passwd"]).contains("/etc/passwd: not an ELF file"));
    assert!(refused(&["-b", "/no/such/file"]).contains("/no/such/file: No such file"));
    assert!(refused(&["-b", HOPSCOPE, "-f", "/(/"]).contains("pattern"));
    let nearest = refused(&["-p", &std::process::id().to_string(), "-f", "libc!mallok"]);
    assert!(nearest.contains("nearest names are: malloc"), "{nearest}");
}

#[test]
fn a_pattern_without_a_match_beside_one_with_is_named() {
    let out = functions(&[
        "-b",
        HOPSCOPE,
        "-f",
        "hopscope::main",
        "-f",
        "no_such_function",
    ]);
    assert!(out.status.success());
    let said = String::from_utf8(out.stderr).unwrap();
    assert_eq!(said, "hopscope: nothing matches no_such_function\n");
}

#[test]
fn either_a_process_or_a_file() {
    for arguments in [&[][..], &["-p", "1", "-b", HOPSCOPE], &["-f", "x"]] {
        assert_eq!(functions(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let mut child = Command::new(HOPSCOPE)
        .args(["functions", "-b", HOPSCOPE])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success() && out.stderr.is_empty(), "{out:?}");
}
