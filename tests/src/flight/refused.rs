//! What cannot be done is refused before anything is touched, with the reason and what to do.
use super::passes::Program;
use anyhow::Result;
use hopscope_tests::{hopscope, scratch};

const CASES: &[(&[&str], &[&str])] = &[
    (&["--trigger", "look"], &["not a trigger", "SIGUSR1"]),
    (&["--trigger", "look > 5"], &["not a time span", "unit"]),
    (&["--trigger", "look >= 5us"], &["only '>'"]),
    (&["--trigger", "look < 5us"], &["only '>'"]),
    (&["--trigger", "> 5us"], &["not a trigger"]),
    (&["--trigger", "lo* > 5us"], &["name of one function"]),
    (&["--trigger", "SIGUSR2"], &["not a trigger", "SIGUSR1"]),
    (
        &["--trigger", "main > 5us"],
        &["main", "give it with -f too"],
    ),
    (&["--trigger", "packet > 5us"], &["--root FUNCTION"]),
    (
        &["--trigger", "packet > 5us", "--root", "main"],
        &["--root", "main", "give it with -f too"],
    ),
    (&["--trigger", "look > 2s"], &["longer --flight"]),
    (
        &["--trigger", "look > 5us", "-o", "/nowhere/at/all.hop"],
        &["/nowhere/at", "another -o"],
    ),
];

pub(super) fn one_line() -> Result<()> {
    let dir = scratch();
    let program = Program::start()?;
    let pid = program.pid().to_string();
    let output = dir.join("out.hop");
    let output = output.to_string_lossy();
    for (words, expected) in CASES {
        let mut all = vec!["record", "-p", &pid, "-f", "look", "--no-calibration"];
        all.extend(["--flight", "1s"]);
        if !words.contains(&"-o") {
            all.extend(["-o", &output]);
        }
        all.extend(*words);
        println!("{words:?}");
        hopscope(&all)?.expect_refusal(expected)?;
    }
    anyhow::ensure!(
        super::files(&dir)?.is_empty(),
        "a refused recording left a file"
    );
    program.terminate()
}
