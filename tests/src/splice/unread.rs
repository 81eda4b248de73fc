//! A close with redirected bytes unread resets the connection, as TCP does: `tests/programs/splice/unread.c`.
use super::bytes::Cable;
use super::scene::{Done, dir, program, splice, splice_as_it_is, splice_python, text};
use anyhow::{Result, ensure};
use hopscope_tests::command::run as command;
use hopscope_tests::{Requirement, Suite, counts};
use nix::sched::{CloneFlags, unshare};
use std::process::Command;

/// Of the program: four ways to end, once for each end.
const CONNECTIONS: u64 = 8;

pub(super) fn register(suite: &mut Suite) {
    use Requirement::{Gcc, Netns, Python3, Root, Splice};
    let here = &[Root, Splice, Gcc];
    let alone = &[Root, Splice, Gcc, Netns];
    for (name, address) in [("v4", "127.0.0.1"), ("v6", "::1")] {
        suite.case(
            format!("splice::a_close_with_unread_bytes_is_a_reset_{name}"),
            alone,
            move || on_this_machine(address),
        );
    }
    suite.case(
        "splice::a_close_with_unread_bytes_is_a_reset_across_namespaces",
        alone,
        across_namespaces,
    );
    suite.case(
        "splice::where_a_device_cannot_be_watched_connections_stay_plain",
        alone,
        unwatched,
    );
    suite.case(
        "splice::as_many_connections_join_as_there_is_room_for",
        alone,
        few,
    );
    suite.case(
        "splice::a_close_while_the_other_end_sends_is_a_reset",
        here,
        while_it_sends,
    );
    suite.case(
        "splice::a_send_during_the_other_ends_close_is_taken",
        here,
        during_a_close,
    );
    suite.case(
        "splice::a_close_with_unread_bytes_is_a_reset_before_other_programs",
        alone,
        before_others,
    );
    suite.case(
        "splice::closes_that_could_not_reset_are_said",
        &[Root, Splice, Gcc, Netns, Python3],
        behind_others,
    );
}

fn both(arguments: &str, around: &str) -> Result<Done> {
    both_with(&[], arguments, around)
}

fn both_with(flags: &[&str], arguments: &str, around: &str) -> Result<Done> {
    let unread = program("unread")?;
    let plain = command(Command::new(&unread).args(arguments.split(' ')))?.expect_code(0)?;
    let script = format!("{around}\n\"$UNREAD\" {arguments}");
    let environment = [("UNREAD", text(&unread)?), ("DIR", text(dir())?)];
    let done = splice_as_it_is(flags, &script, &environment)?;
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

/// In a network namespace where nobody else's connections have ports, nor wait in TIME-WAIT.
fn on_this_machine(address: &str) -> Result<()> {
    enter_new_namespace()?;
    expect_resets(&both(address, "")?)
}

/// All ask for it at the same look: three join whole, the others are counted once each.
fn few() -> Result<()> {
    enter_new_namespace()?;
    let done = both_with(&["--connections", "3"], "127.0.0.1", "")?;
    ensure!(
        done.count("connections")? == 3
            && done.count("ends_joined")? == 6
            && done.count("plain_full")? == CONNECTIONS - 3
            && done.count("plain_map_error")? == 0,
        "{}",
        done.summary
    );
    Ok(())
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

/// A message that is between its verdict and the queue, or comes later, is lost; one that was read is not.
fn while_it_sends() -> Result<()> {
    let closing = program("closing")?;
    let script = format!("{} {}", text(&closing)?, counts().pick(1_500, 40_000));
    let done = splice(&[], &script, &[])?;
    done.expect_code(0)?;
    done.expect_adds_up()?;
    let said = done.said()?;
    let of = |name: &str| said[name].as_u64();
    ensure!(
        of("not_told") == Some(0)
            && of("told_wrongly") == Some(0)
            && of("unread").is_some_and(|unread| unread > 0)
            && of("all_read").is_some_and(|read| read > 0),
        "{said} {}",
        done.summary
    );
    Ok(())
}

/// TCP takes it, and answers with a reset. The sends stay where a close finds them on their way.
fn during_a_close() -> Result<()> {
    let times = counts().pick(40, 1_000);
    let script = format!("{} {times}", text(&program("first_send")?)?);
    let done = splice(&["--linger-us", "200"], &script, &[])?;
    done.expect_code(0)?;
    done.expect_adds_up()?;
    let said = done.said()?;
    ensure!(
        said["during"] == times && said["refused"] == 0 && said["reset"] == said["rounds"],
        "{said} {}",
        done.summary
    );
    Ok(())
}

/// A network namespace of this case's own, with a loopback device.
fn enter_new_namespace() -> Result<()> {
    unshare(CloneFlags::CLONE_NEWNET)?;
    command(Command::new("ip").args(["link", "set", "lo", "up"]))?.expect_code(0)?;
    Ok(())
}

/// One at the same device that ends the list of programs was there first.
fn before_others() -> Result<()> {
    enter_new_namespace()?;
    let [unread, passes] = [program("unread")?, program("passes")?];
    let plain = command(Command::new(&unread).arg("127.0.0.1"))?.expect_code(0)?;
    let [unread, passes] = [text(&unread)?, text(&passes)?];
    // The accelerator is at this namespace's device from its start, and comes to the other's later.
    let script =
        format!("unshare -n sh -c \"ip link set lo up && exec {passes} lo {unread} 127.0.0.1\"");
    let done = splice_as_it_is(&[], &script, &[])?;
    ensure!(
        done.output.stdout == plain.stdout,
        "plain TCP says\n{}\nand redirected connections\n{}{}",
        plain.stdout,
        done.output.stdout,
        done.output.stderr
    );
    expect_resets(&done)
}

/// One puts itself before the accelerator's, and ends the list.
fn behind_others() -> Result<()> {
    const CLOSES: &str = r#"
import socket
listener = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(listener.getsockname())
server, _ = listener.accept()
client.send(b"x")
server.recv(1)
client.send(b"unread")
server.close()
print(client.recv(1))
"#;
    enter_new_namespace()?;
    let passes = program("passes")?;
    let script = "\"$PASSES\" lo python3 -c \"$CLOSES\"";
    let environment = [("PASSES", text(&passes)?), ("CLOSES", CLOSES)];
    let done = splice_python(&[], script, &environment)?;
    done.expect_code(0)?;
    ensure!(
        done.count("closed_unread")? == 1 && done.count("reset_unread")? == 0,
        "{}",
        done.summary
    );
    let what = "1 end closed with unread bytes sent a FIN";
    ensure!(done.output.stderr.contains(what), "{:?}", done.output);
    Ok(())
}
