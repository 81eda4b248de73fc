//! Functions that can have no copy, and are timed where they are called by their names; `--method calls`.
use crate::inlined::said_the_same as same;
use crate::recording::Report;
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, compile, compile_c, hopscope, scratch};
use serde_json::Value;
use std::path::{Path, PathBuf};

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Clang, Fsgsbase, Gcc};
    let gcc = &[Gcc, Fsgsbase];
    suite.case("by_name::too_short_for_a_jump_gcc", gcc, || short("gcc"));
    suite.case(
        "by_name::too_short_for_a_jump_clang",
        &[Gcc, Clang, Fsgsbase],
        || short("clang"),
    );
    suite.case("by_name::of_other_modules", gcc, other_modules);
    suite.case("by_name::listed_with_what_is_not_seen", gcc, listed);
    suite.case("by_name::noted_in_the_file", gcc, noted);
    suite.case("by_name::callers_that_are_not_measured", gcc, not_measured);
    suite.case("by_name::only_where_it_was_asked_for", gcc, only_asked);
}

const ROUNDS: u64 = 200;

fn built(compiler: &str, flags: &str, of_library: &str) -> Result<PathBuf> {
    let shared = ["-O2", "-fPIC", "-shared", of_library];
    let library = compile_c(&["by_name/library.c", "by_name/odd.S"], &shared)?;
    let library = library.to_str().context("a path in UTF-8")?;
    let mut all: Vec<&str> = flags.split(' ').collect();
    all.extend(["-Wall", library]);
    compile(compiler, &["by_name/program.c", "by_name/short.S"], &all)
}

fn by_gcc() -> Result<PathBuf> {
    built("gcc", "-O2", "-Wl,-Bsymbolic-functions")
}

/// Calls of `callee` by all that are timed.
fn sum(report: &Report, callee: &str) -> u64 {
    let begins = format!("{callee} [called by ");
    let functions = report.functions.iter();
    let its = functions.filter(|(name, _)| name.starts_with(&begins));
    its.map(|(_, balance)| balance["entries"]).sum()
}

fn measured(program: &Path, patterns: &[&str]) -> Result<Report> {
    let (_, report) = same(program, &[&ROUNDS.to_string()], patterns)?;
    Ok(report)
}

fn short(compiler: &str) -> Result<()> {
    for (flags, jumps) in [("-O0", false), ("-O2", true), ("-O2 -no-pie", true)] {
        let program = built(compiler, flags, "-Wl,-Bsymbolic-functions")?;
        let report = measured(&program, &["one", "two", "looped"])?;
        ensure!(report.refused.is_empty(), "{flags}: {:?}", report.refused);
        let of_one = if jumps { 2 } else { 3 };
        for (callee, a_round) in [("one", of_one), ("two", 3), ("looped", 1)] {
            let calls = sum(&report, callee);
            ensure!(
                calls == a_round * ROUNDS,
                "{compiler} {flags}: {calls} calls of {callee}: {:?}",
                report.functions
            );
        }
    }
    Ok(())
}

/// Directly, by a stub and by a slot; a function of that name elsewhere is another one.
fn other_modules() -> Result<()> {
    for flags in ["-O2", "-O2 -fno-plt -Wl,-z,now"] {
        for of_library in ["-Wl,-Bsymbolic-functions", "-fplt"] {
            let program = built("gcc", flags, of_library)?;
            let report = measured(&program, &["odd"])?;
            let calls = ["main", "within"]
                .map(|caller| report.entries(&format!("odd [called by {caller}]")));
            ensure!(
                calls == [2 * ROUNDS, 5 * ROUNDS],
                "{flags} {of_library}: {calls:?}: {:?}",
                report.refused
            );
        }
    }
    Ok(())
}

/// What `record --dry-run` says of each function.
fn dry(words: &[&str]) -> Result<Vec<Value>> {
    let program = by_gcc()?;
    let program = program.to_str().context("a path in UTF-8")?;
    let words = [&["record", "--dry-run", "--json"], words, &["--", program]].concat();
    let out = hopscope(&words)?.expect_code(0)?;
    let lines = out.stdout.lines().map(serde_json::from_str);
    Ok(lines.collect::<Result<_, _>>()?)
}

fn of<'a>(said: &'a [Value], verdict: &str, name: &str) -> Option<&'a Value> {
    said.iter()
        .find(|row| row["verdict"] == verdict && row["name"] == name)
}

fn listed() -> Result<()> {
    let said = dry(&["-f", "one", "-f", "two", "-f", "unused"])?;
    let row =
        |name: &str| of(&said, "in_callers", name).with_context(|| format!("{name}: {said:?}"));
    let (one, two) = (row("one")?, row("two")?);
    ensure!(one["callers"] == 1 && one["jumps"] == 1, "{one}");
    ensure!(one["is_pointed_to"] == false, "{one}");
    ensure!(two["callers"] == 2 && two["jumps"] == 0, "{two}");
    ensure!(two["is_pointed_to"] == true, "{two}");
    ensure!(two["reason"].to_string().contains("too short"), "{two}");
    ensure!(of(&said, "refused", "one").is_none(), "{said:?}");
    // Nobody calls it.
    let unused = of(&said, "refused", "unused").context("unused")?;
    ensure!(
        unused["reason"].to_string().contains("too short"),
        "{unused}"
    );
    Ok(())
}

/// What is not counted is in the file, too.
fn noted() -> Result<()> {
    let program = by_gcc()?;
    let program = program.to_str().context("a path in UTF-8")?;
    let file = scratch().join("noted.hop");
    let file = file.to_str().context("a path in UTF-8")?;
    for (words, why) in [
        (&["-f", "one"][..], true),
        (&["-f", "program-*!one", "--method", "calls"], false),
    ] {
        let record = ["record", "--json", "--no-calibration", "-o", file];
        let words = [&record[..], words, &["--", program, "10"]].concat();
        let said = hopscope(&words)?.expect_code(0)?;
        let report = hopscope(&["report", file])?.expect_code(0)?;
        for text in [said.stderr, report.stdout] {
            ensure!(
                text.contains("not in 1 function that ends in a jump to it")
                    && text.contains("too short") == why,
                "{words:?}: {text}"
            );
        }
    }
    Ok(())
}

/// Those that are refused, or left out, are not among those that it is timed in.
fn not_measured() -> Result<()> {
    let said = dry(&["-f", "three", "-f", "four"])?;
    let three = of(&said, "in_callers", "three").with_context(|| format!("{said:?}"))?;
    ensure!(three["callers"] == 1 && three["not_timed"] == 1, "{three}");
    ensure!(three["is_pointed_to"] == false, "{three}");
    let why = |said: &[Value], name| of(said, "refused", name).map(|row| row["reason"].to_string());
    let not_measured = "the function that calls it by its name is not measured";
    let four = why(&said, "four");
    ensure!(
        four.is_some_and(|why| why.contains(not_measured)),
        "{said:?}"
    );
    // The program has a pointer to it in its data.
    let said = dry(&["-f", "away", "--method", "calls"])?;
    let away = of(&said, "in_callers", "away").with_context(|| format!("{said:?}"))?;
    ensure!(
        away["callers"] == 1 && away["is_pointed_to"] == true,
        "{away}"
    );
    let said = dry(&["-f", "three", "-f", "two", "-x", "thrice"])?;
    let none = why(&said, "three");
    ensure!(
        none.is_some_and(|why| why.contains("none of the 2 functions")),
        "{said:?}"
    );
    let report = measured(&by_gcc()?, &["three"])?;
    ensure!(
        sum(&report, "three") == 3 * ROUNDS,
        "{:?}",
        report.functions
    );
    let program = by_gcc()?;
    let program = program.to_str().context("a path in UTF-8")?;
    let file = scratch().join("three.hop");
    let file = file.to_str().context("a path in UTF-8")?;
    let record = ["record", "--no-calibration", "-o", file, "-f", "three"];
    let said = hopscope(&[&record[..], &["--", program, "10"]].concat())?.expect_code(0)?;
    let note =
        "timed in the 1 function that calls it by its name, not in 1 more that is not measured";
    ensure!(said.stderr.contains(note), "{said:?}");
    Ok(())
}

fn only_asked() -> Result<()> {
    // Of many nobody asked for their callers, and here probes are taken away while recording.
    for words in [
        &["-f", "on?"][..],
        &["-f", "one", "--method", "jump"],
        &["-f", "one", "-f", "one(arg1)", "-f", "main"],
        &["-f", "one", "-f", "main", "--budget", "5"],
        &["-f", "one", "-f", "main", "--check-cost"],
    ] {
        let said = dry(words)?;
        let reason = of(&said, "refused", "one").map(|row| row["reason"].to_string());
        let is_too_short = reason.is_some_and(|why| why.contains("too short"));
        ensure!(is_too_short, "{words:?}: {said:?}");
    }
    let program = by_gcc()?;
    let program = program.to_str().context("a path in UTF-8")?;
    let out = scratch().join("followed.hop");
    let out = out.to_str().context("a path in UTF-8")?;
    let words = ["record", "--no-calibration", "--follow-dlopen", "-o", out];
    let words = [&words[..], &["-f", "one", "-f", "main", "--", program, "1"]].concat();
    let followed = hopscope(&words)?.expect_code(0)?;
    ensure!(
        followed.stderr.contains("refused 1: too short"),
        "{followed:?}"
    );
    let said = dry(&[
        "-f",
        "program-*!/^(one|within|twice|unused)$/",
        "--method",
        "calls",
    ])?;
    // `within` is the library's, and `twice` is measured for what it calls.
    let row = |name: &str| of(&said, "in_callers", name).map(|row| row["callers"].clone());
    ensure!(row("one") == Some(1.into()), "{said:?}");
    ensure!(row("twice") == Some(1.into()), "{said:?}");
    ensure!(row("within").is_none(), "{said:?}");
    let why = |name: &str| of(&said, "refused", name).map(|row| row["reason"].to_string());
    let nobody = why("unused").is_some_and(|why| why.contains("nothing calls it by its name"));
    ensure!(nobody, "{said:?}");
    for (words, why) in [
        (&["-f", "one(arg1)"][..], "leaves functions as they are"),
        (&["-f", "one", "--budget", "5"], "calls:"),
        (&["-f", "one", "--follow-dlopen"], "calls:"),
    ] {
        let program = by_gcc()?;
        let program = program.to_str().context("a path in UTF-8")?;
        let words = [&["record", "--method", "calls"], words, &["--", program]].concat();
        let out = hopscope(&words)?;
        ensure!(
            out.code != Some(0) && out.stderr.contains(why) && out.stderr.lines().count() == 1,
            "{words:?}: {out:?}"
        );
    }
    Ok(())
}
