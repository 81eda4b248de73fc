//! `hopscope functions`: what it says of a file and of a process agrees, and modules go by the names that
//! users know.
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, Target, compile, hopscope, scratch};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(crate) fn register(suite: &mut Suite) {
    let gxx = &[Requirement::Gxx, Requirement::Gcc];
    suite.case("listed::a_file_alone_and_where_others_raise", gxx, company);
    suite.case(
        "listed::modules_by_their_names",
        &[Requirement::Gcc],
        modules,
    );
    suite.case(
        "listed::a_replaced_program_by_its_names",
        &[Requirement::Gcc, Requirement::Root],
        replaced,
    );
    suite.case("listed::a_name_of_two_modules", gxx, ambiguous);
    suite.case(
        "listed::processes_by_their_names",
        &[Requirement::Gcc],
        processes,
    );
}

const PLAIN: [&str; 2] = ["-O1", "-rdynamic"];

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("a path of letters")
}

/// Rows of a type.
fn rows(words: &[&str], of: &str) -> Result<Vec<Value>> {
    let out = hopscope(words)?.expect_code(0)?.stdout;
    let rows: Vec<Value> = out
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    Ok(rows.into_iter().filter(|row| row["type"] == of).collect())
}

/// Plain C in the company of what is loaded beside it.
fn loads(beside: Option<&Path>) -> Result<(PathBuf, Target)> {
    let program = compile("gcc", &["unwound/loads.c"], &PLAIN)?;
    let mut start = Command::new(&program);
    start.arg("none").stdin(Stdio::piped());
    if let Some(beside) = beside {
        start.env("LD_PRELOAD", beside);
    }
    Ok((program, Target::spawn(&mut start)?))
}

fn company() -> Result<()> {
    let plug_in = compile(
        "g++",
        &["unwound/plug_in.cpp"],
        &["-O1", "-fPIC", "-shared"],
    )?;
    let (program, alone) = loads(None)?;
    let (_, among_others) = loads(Some(&plug_in))?;
    let file = text(&program)?;
    let base = program
        .file_name()
        .and_then(|n| n.to_str())
        .context("a name")?;

    let measurable = |target: &Target| -> Result<u64> {
        let (pid, pattern) = (target.pid().to_string(), format!("{base}!*"));
        let rows = rows(
            &[
                "functions",
                "-p",
                &pid,
                "-f",
                &pattern,
                "--summary",
                "--json",
            ],
            "module",
        )?;
        rows[0]["measurable"].as_u64().context("a number")
    };
    let (by_itself, in_company) = (measurable(&alone)?, measurable(&among_others)?);
    ensure!(
        in_company < by_itself,
        "{in_company} and {by_itself}: no difference to be told"
    );

    let of_file = rows(&["functions", "-b", file, "--summary", "--json"], "module")?;
    let row = &of_file[0];
    ensure!(
        of_file.len() == 1 && row["measurable"] == by_itself,
        "{by_itself} in a process: {row}"
    );
    ensure!(
        row["measurable_if_others_raise"] == in_company,
        "{in_company} in a process: {row}"
    );
    let end = rows(&["functions", "-b", file, "--summary", "--json"], "summary")?;
    let lost = by_itself - in_company;
    ensure!(
        end[0]["accepted"] == by_itself && end[0]["accepted_if_none_raises_only"] == lost,
        "{}",
        end[0]
    );

    let each = rows(&["functions", "-b", file, "--json"], "function")?;
    let oddly = each
        .iter()
        .find(|row| row["name"] == "oddly")
        .context("oddly")?;
    ensure!(
        oddly["verdict"] == "relocate" && oddly["refused_if_others_raise"] == true,
        "{oddly}"
    );
    let refused = each
        .iter()
        .filter(|row| row["refused_if_others_raise"] == true)
        .count() as u64;
    ensure!(
        refused == each.len() as u64 - in_company,
        "{refused} of {}",
        each.len()
    );

    let lines = hopscope(&["functions", "-b", file])?.expect_code(0)?.stdout;
    let told = lines
        .lines()
        .find(|line| line.contains("!oddly "))
        .context("oddly")?;
    ensure!(
        told.ends_with("relocate, but not where another module raises exceptions"),
        "{told}"
    );
    for out in [
        lines,
        hopscope(&["functions", "-b", file, "--summary"])?
            .expect_code(0)?
            .stdout,
    ] {
        ensure!(
            out.contains(&format!("\n{by_itself} functions can be measured, ")),
            "{out}"
        );
        ensure!(
            out.contains(&format!(
                "\n{lost} of these not in a process where another module raises"
            )),
            "{out}"
        );
    }
    Ok(())
}

/// A program called otherwise than it is started, in a folder of its own.
struct Linked {
    file: PathBuf,
    link: PathBuf,
}

fn linked(folder: &Path, file: &str, link: &str) -> Result<Linked> {
    let program = compile("gcc", &["unwound/loads.c"], &PLAIN)?;
    let (files, links) = (folder.join("files"), folder.join("links"));
    fs::create_dir_all(&files)?;
    fs::create_dir_all(&links)?;
    let linked = Linked {
        file: files.join(file),
        link: links.join(link),
    };
    fs::copy(program, &linked.file)?;
    symlink(&linked.file, &linked.link)?;
    Ok(linked)
}

impl Linked {
    fn start(&self, beside: &str) -> Result<Target> {
        let mut start = Command::new(&self.link);
        Target::spawn(
            start
                .arg("none")
                .env("LD_PRELOAD", beside)
                .stdin(Stdio::piped()),
        )
    }
}

/// Both that list functions and what would be measured know the module by each of these.
fn expect_found(pid: i32, modules: &[&str]) -> Result<()> {
    let pid = pid.to_string();
    for module in modules {
        let pattern = format!("{module}!through");
        let listed = rows(
            &["functions", "-p", &pid, "-f", &pattern, "--json"],
            "function",
        )?;
        ensure!(
            listed.len() == 1 && listed[0]["name"] == "through",
            "{module}: {listed:?}"
        );
        let words = ["record", "-p", &pid, "-f", &pattern, "--dry-run", "--json"];
        let planned = rows(&words, "function")?;
        ensure!(
            planned.len() == 1 && planned[0]["verdict"] == "relocate",
            "{module}: {planned:?}"
        );
    }
    Ok(())
}

fn modules() -> Result<()> {
    let nf = linked(&scratch(), "nf-1.2", "nf-started")?;
    symlink("nf-1.2", nf.file.with_file_name("nf-beside"))?;
    let target = nf.start("")?;
    let exe = format!("/proc/{}/exe", target.pid());
    let known = [
        "nf-1.2",
        "nf-started",
        "nf-beside",
        text(&nf.file)?,
        text(&nf.link)?,
        &exe,
    ];
    expect_found(target.pid(), &known)?;
    let pid = target.pid().to_string();
    let other = hopscope(&["functions", "-p", &pid, "-f", "nf-other!*"])?;
    other.expect_refusal(&["no module is named nf-other"])?;
    // The same for -x, whose functions are left out.
    let words = ["functions", "-p", &pid, "-f", "nf-1.2!*", "--json"];
    let (all, rest) = (
        rows(&words, "function")?,
        rows(
            &[&words[..], &["-x", "nf-started!through"]].concat(),
            "function",
        )?,
    );
    ensure!(
        rest.len() + 1 == all.len(),
        "{} of {}",
        rest.len(),
        all.len()
    );
    // Of a file: also as what the link leads to.
    let of_file = rows(
        &[
            "functions",
            "-b",
            text(&nf.link)?,
            "-f",
            "nf-1.2!through",
            "--json",
        ],
        "function",
    )?;
    ensure!(of_file.len() == 1, "{of_file:?}");
    Ok(())
}

fn replaced() -> Result<()> {
    let nf = linked(&scratch(), "nf-1.2", "nf-started")?;
    let target = nf.start("")?;
    let exe = format!("/proc/{}/exe", target.pid());
    let known = ["nf-1.2", "nf-started", text(&nf.file)?, &exe];
    fs::remove_file(&nf.file)?;
    expect_found(target.pid(), &known)?;
    fs::write(&nf.file, "another program")?;
    expect_found(target.pid(), &known)?;
    expect_found(target.pid(), &[text(&nf.link)?])
}

fn ambiguous() -> Result<()> {
    let nf = linked(&scratch(), "nf-1.2", "nf-twice")?;
    let library = nf.file.with_file_name("nf-twice");
    fs::copy(
        compile(
            "g++",
            &["unwound/plug_in.cpp"],
            &["-O1", "-fPIC", "-shared"],
        )?,
        &library,
    )?;
    let target = nf.start(text(&library)?)?;
    let pid = target.pid().to_string();
    for words in [
        &["functions", "-p", &pid][..],
        &["record", "--dry-run", "-p", &pid],
    ] {
        let refused = hopscope(&[words, &["-f", "nf-twice!*"]].concat())?.expect_code(2)?;
        let why = [
            "nf-twice may be any of",
            text(&nf.file)?,
            text(&library)?,
            "give the path",
        ];
        let lines = refused.stderr.lines().count();
        let all = why.iter().all(|word| refused.stderr.contains(word));
        ensure!(lines == 1 && all, "{}", refused.stderr);
    }
    let of_library = format!("{}!*", text(&library)?);
    let listed = rows(
        &["functions", "-p", &pid, "-f", &of_library, "--json"],
        "function",
    )?;
    ensure!(
        !listed.is_empty()
            && listed
                .iter()
                .all(|row| row["path"] == text(&library).unwrap_or("")),
        "{listed:?}"
    );
    Ok(())
}

fn processes() -> Result<()> {
    let folder = scratch();
    // Longer than the kernel's command names are.
    let name = format!("network-function-{}", std::process::id());
    let nf = linked(&folder.join("one"), &format!("{name}-1.2"), &name)?;
    let target = nf.start("")?;
    for name in [name.clone(), format!("{name}-1.2"), name[..15].to_owned()] {
        let words = [
            "record",
            "--comm",
            &name,
            "-f",
            "through",
            "--dry-run",
            "--json",
        ];
        let planned = rows(&words, "function")?;
        ensure!(planned.len() == 1, "{name}: {planned:?}");
    }
    // A file by the name of a program that runs.
    let listed = rows(
        &["functions", "-b", &name, "-f", "through", "--json"],
        "function",
    )?;
    ensure!(
        listed.len() == 1 && listed[0]["path"] == text(&nf.file)?,
        "{listed:?}"
    );
    let other = linked(&folder.join("other"), &format!("{name}-1.2"), &name)?;
    let second = other.start("")?;
    let both = [text(&nf.file)?, text(&other.file)?];
    let refused = hopscope(&["record", "--comm", &name, "-f", "through", "--dry-run"])?;
    refused.expect_refusal(&[both[0], both[1], "give -p PID"])?;
    let refused = hopscope(&["functions", "-b", &name])?;
    refused.expect_refusal(&[both[0], both[1], "give the path"])?;
    drop((target, second));
    let nobody = hopscope(&["functions", "-b", "nobody-runs-this"])?;
    nobody.expect_refusal(&["nobody-runs-this: no such file"])?;
    Ok(())
}
