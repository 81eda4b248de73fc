//! A close with redirected bytes unread resets the connection, as TCP does: `tests/programs/splice/unread.c`.
use super::bytes::Cable;
use super::scene::{Done, dir, program, splice_as_it_is, text};
use anyhow::{Result, ensure};
use hopscope_tests::command::run as command;
use hopscope_tests::{Requirement, Suite};
use std::process::Command;

/// Of the program: four ways to end, once for each end.
const CONNECTIONS: u64 = 8;

pub(super) fn register(suite: &mut Suite) {
    use Requirement::{Gcc, Netns, Root, Splice};
    let here = &[Root, Splice, Gcc];
    for (name, address) in [("v4", "127.0.0.1"), ("v6", "::1")] {
        suite.case(
            format!("splice::a_close_with_unread_bytes_is_a_reset_{name}"),
            here,
            move || on_this_machine(address),
        );
    }
    suite.case(
        "splice::a_close_with_unread_bytes_is_a_reset_across_namespaces",
        &[Root, Splice, Gcc, Netns],
        across_namespaces,
    );
    suite.case(
        "splice::where_a_device_cannot_be_watched_connections_stay_plain",
        &[Root, Splice, Gcc, Netns],
        unwatched,
    );
}

fn both(arguments: &str, around: &str) -> Result<Done> {
    let unread = program("unread")?;
    let plain = command(Command::new(&unread).args(arguments.split(' ')))?.expect_code(0)?;
    let script = format!("{around}\n\"$UNREAD\" {arguments}");
    let environment = [("UNREAD", text(&unread)?), ("DIR", text(dir())?)];
    let done = splice_as_it_is(&[], &script, &environment)?;
    ensure!(
        done.output.code == Some(0) && done.output.stdout == plain.stdout,
        "plain TCP says\n{}\nand redirected connections\n{}{}",
        plain.stdout,
        done.output.stdout,
        done.output.stderr
    );
    done.expect_adds_up()?;
    Ok(done)
}

fn expect_resets(done: &Done) -> Result<()> {
    ensure!(
        done.count("connections")? == CONNECTIONS
            && done.count("closed_unread")? == CONNECTIONS
            && done.count("reset_unread")? == CONNECTIONS,
        "{}",
        done.summary
    );
    Ok(())
}

fn on_this_machine(address: &str) -> Result<()> {
    expect_resets(&both(address, "")?)
}

/// The program is in the client's namespace; a process of the group has to be in the server's, too, for that to be found.
fn across_namespaces() -> Result<()> {
    let cable = Cable::new("")?;
    let [server, client] = ["s", "c"].map(|end| cable.name(end));
    let around = format!("{} sleep 1000 & trap \"kill $!\" EXIT", cable.enter("s"));
    for address in ["10.98.0.2", "fd98::2"] {
        expect_resets(&both(&format!("{address} {server} {client}"), &around)?)?;
    }
    Ok(())
}

/// No process is in the server's namespace.
fn unwatched() -> Result<()> {
    let cable = Cable::new("")?;
    let [server, client] = ["s", "c"].map(|end| cable.name(end));
    let done = both(&format!("10.98.0.2 {server} {client}"), "")?;
    ensure!(
        done.count("ends_joined")? == 0 && done.count("plain_undecided")? == CONNECTIONS,
        "{}",
        done.summary
    );
    let why = "no process in its network namespace";
    ensure!(done.output.stderr.contains(why), "{:?}", done.output);
    Ok(())
}
