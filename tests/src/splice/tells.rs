//! What calls say is the same on joined connections as on others: `tests/programs/splice/tells.c`.
use super::scene::{Done, program, splice_as_it_is, text};
use anyhow::{Result, ensure};
use hopscope_tests::command::run as command;
use hopscope_tests::{Requirement, Suite};
use std::process::Command;

pub(super) fn register(suite: &mut Suite) {
    use Requirement::{Gcc, Root, Splice};
    let here = &[Root, Splice, Gcc];
    suite.case(
        "splice::a_socket_that_is_used_again_or_shut_is_tcps",
        here,
        ends,
    );
    suite.case(
        "splice::an_end_that_has_shut_its_writing_is_tcps",
        here,
        half,
    );
    suite.case(
        "splice::sends_with_flags_of_tcp_alone_take_tcp",
        here,
        flags,
    );
    suite.case("splice::sends_of_several_threads_stay_whole", here, torn);
    suite.case("splice::calls_of_tcp_alone_stay_on_tcp", here, calls);
    suite.case("splice::options_of_tcp_alone_take_tcp", here, options);
}

/// What it says by itself, and below `splice run`.
fn both(case: &str) -> Result<Done> {
    let tells = program("tells")?;
    let plain = command(Command::new(&tells).arg(case))?.expect_code(0)?;
    let done = splice_as_it_is(
        &[],
        &format!("exec \"$TELLS\" {case}"),
        &[("TELLS", text(&tells)?)],
    )?;
    ensure!(
        done.output.code == Some(0) && done.output.stdout == plain.stdout,
        "plain TCP says\n{}\nand joined connections\n{}{}",
        plain.stdout,
        done.output.stdout,
        done.output.stderr
    );
    done.expect_adds_up()?;
    Ok(done)
}

/// Unread bytes stay with their connection, what is sent goes to whom it was connected to, and an end that was shut or
/// reset says so.
fn ends() -> Result<()> {
    let done = both("ends")?;
    ensure!(done.count("connections")? >= 8, "{}", done.summary);
    Ok(())
}

/// A send of no bytes fails, and what comes unread is no secret to TCP at the close.
fn half() -> Result<()> {
    let done = both("half")?;
    ensure!(
        done.count("connections")? == 6 && done.count("closed_unread")? == 0,
        "{}",
        done.summary
    );
    Ok(())
}

/// MSG_OOB and MSG_FASTOPEN, and what is sent after them.
fn flags() -> Result<()> {
    let done = both("flags")?;
    ensure!(
        done.count("connections")? == 2 && done.count("tcp_leaving")? >= 2,
        "{}",
        done.summary
    );
    Ok(())
}

/// One send may be more than one message, and another thread's bytes must not come in between.
fn torn() -> Result<()> {
    let done = both("torn")?;
    ensure!(
        done.count("connections")? == 1 && done.count("tcp_shared")? > 0,
        "{}",
        done.summary
    );
    Ok(())
}

/// Who begins with splice(2), MSG_TRUNC or MSG_PEEK is never joined.
fn calls() -> Result<()> {
    for case in ["splice", "truncates", "looks"] {
        let done = both(case)?;
        ensure!(
            done.count("plain_calls")? == 1 && done.count("ends_joined")? == 0,
            "{case}: {}",
            done.summary
        );
    }
    Ok(())
}

fn options() -> Result<()> {
    let done = both("options")?;
    ensure!(
        done.count("connections")? == 5
            && done.count("plain_options")? == 1
            && done.count("tcp_leaving")? > 0,
        "{}",
        done.summary
    );
    Ok(())
}
