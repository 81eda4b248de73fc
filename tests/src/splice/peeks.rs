//! A reader that first peeks once its connection is redirected: `tests/programs/splice/peeks.c`.
use super::scene::{attached, program, splice_as_it_is, text};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run as command;
use hopscope_tests::{Requirement, Suite, Target};
use nix::sys::signal::Signal;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

const WAYS: [&str; 4] = ["poll forth", "poll back", "edge forth", "edge back"];

pub(super) fn register(suite: &mut Suite) {
    use Requirement::{Gcc, Root, Splice};
    let here = &[Root, Splice, Gcc];
    suite.case("splice::who_peeks_is_shown_all", here, shown);
    suite.case("splice::who_peeks_is_shown_all_at_its_end", here, ended);
}

/// Bytes that came by TCP behind redirected ones, and then the connection is plain.
fn shown() -> Result<()> {
    let peeks = program("peeks")?;
    for way in WAYS {
        let plain = command(Command::new(&peeks).args(way.split(' ')))?.expect_code(0)?;
        let script = format!("exec \"$PEEKS\" {way}");
        let done = splice_as_it_is(&["--verify"], &script, &[("PEEKS", text(&peeks)?)])?;
        done.expect_code(0)?;
        done.expect_adds_up()?;
        ensure!(
            done.output.stdout == plain.stdout,
            "{way}: plain TCP says\n{}\nand joined connections\n{}{}",
            plain.stdout,
            done.output.stdout,
            done.output.stderr
        );
        ensure!(
            done.count("gathered")? == 1
                && done.count("released_calls")? == 1
                && done.count("mismatched_directions")? == 0,
            "{way}: {}",
            done.summary
        );
    }
    Ok(())
}

/// It waits for what is unread, which is not read before it is shown.
fn ended() -> Result<()> {
    let (attached, port) = attached(|attach| {
        attach.arg("-q");
    })?;
    let mut peeks = Command::new(program("peeks")?);
    peeks.args(["poll", "forth", &port]).stdout(Stdio::piped());
    let mut peeks = Target::spawn_now(&mut peeks)?;
    let stdout = peeks.child().stdout.take().context("stdout")?;
    let mut stdout = BufReader::new(stdout);
    let mut line = String::new();
    stdout.read_line(&mut line)?;
    ensure!(line == "in vain\n", "{line}");
    attached.signal(Signal::SIGINT)?;
    let mut rest = String::new();
    stdout.read_to_string(&mut rest)?;
    ensure!(
        rest.contains("peeked: 1500, the same") && peeks.wait()?.success(),
        "{rest}"
    );
    ensure!(attached.wait()?.success(), "its end");
    Ok(())
}
