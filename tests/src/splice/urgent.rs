//! Urgent bytes (MSG_OOB): `tests/programs/splice/urgent.c`.
use super::scene::{program, splice_as_it_is, text};
use anyhow::{Result, ensure};
use hopscope_tests::command::run as command;
use hopscope_tests::{Requirement, Suite};
use std::process::Command;

pub(super) fn register(suite: &mut Suite) {
    use Requirement::{Gcc, Root, Splice};
    let here = &[Root, Splice, Gcc];
    suite.case("splice::who_is_told_by_signals_stays_on_tcp", here, owned);
    suite.case(
        "splice::a_byte_taken_for_the_urgent_one_is_counted",
        here,
        misread,
    );
}

/// It may read the urgent byte at SIGURG.
fn owned() -> Result<()> {
    let urgent = program("urgent")?;
    let plain = command(Command::new(&urgent).arg("owned"))?.expect_code(0)?;
    ensure!(plain.stdout == "U\nabc\n", "{}", plain.stdout);
    let script = "exec \"$URGENT\" owned";
    let done = splice_as_it_is(&[], script, &[("URGENT", text(&urgent)?)])?;
    done.expect_code(0)?;
    ensure!(
        done.output.stdout == plain.stdout && done.count("plain_options")? == 1,
        "{} {}",
        done.output.stdout,
        done.summary
    );
    Ok(())
}

/// The kernel takes it out of the stream while redirected bytes are unread.
fn misread() -> Result<()> {
    let urgent = program("urgent")?;
    let done = splice_as_it_is(&[], "exec \"$URGENT\"", &[("URGENT", text(&urgent)?)])?;
    done.expect_code(0)?;
    let missing = 1 - u64::from(done.output.stdout.starts_with("U\nabc\n"));
    ensure!(
        done.count("connections")? == 1 && done.count("urgent_misread")? == missing,
        "{} {}",
        done.output.stdout,
        done.summary
    );
    Ok(())
}
