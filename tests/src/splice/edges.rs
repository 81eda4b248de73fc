//! Readers that wait for edges (EPOLLET) see what came by TCP behind redirected bytes: `tests/programs/splice/edges.c`.
use super::scene::{attached, program, splice_as_it_is, text};
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, Target};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

const WAYS: [&str; 4] = ["4 forth", "4 back", "6 forth", "6 back"];

pub(super) fn register(suite: &mut Suite) {
    use Requirement::{Gcc, Netns, Root, Splice};
    let here = &[Root, Splice, Gcc];
    suite.case("splice::an_edge_is_not_lost_under_pressure", here, pressure);
    suite.case(
        "splice::an_edge_is_not_lost_in_another_netns",
        &[Root, Splice, Gcc, Netns],
        elsewhere,
    );
    suite.case("splice::an_edge_is_not_lost_at_a_release", here, released);
    suite.case("splice::an_edge_is_not_lost_at_its_end", here, ended);
    suite.case(
        "splice::it_ends_while_a_reader_is_stopped",
        &[Root, Splice, Gcc, Netns],
        stopped,
    );
}

/// Some of it was redirected, and read before what came by TCP.
fn expect(line: &str) -> Result<()> {
    let said: Value = serde_json::from_str(line.trim()).with_context(|| line.to_owned())?;
    let [sent, by_tcp, first, read] =
        ["sent", "by_tcp", "first", "read"].map(|name| said[name].as_u64().unwrap_or(0));
    ensure!(
        0 < by_tcp && by_tcp < sent && first == sent - by_tcp && read == sent,
        "{line}"
    );
    Ok(())
}

fn run(case: &str, script: &str) -> Result<()> {
    let edges = program("edges")?;
    for way in WAYS {
        let script = format!("{script} {case} {way}");
        let done = splice_as_it_is(&[], &script, &[("EDGES", text(&edges)?)])?;
        done.expect_code(0)?;
        done.expect_adds_up()?;
        let line = done.output.stdout.lines().last().unwrap_or_default();
        expect(line).with_context(|| way.to_owned())?;
    }
    Ok(())
}

fn pressure() -> Result<()> {
    run("pressure", "exec \"$EDGES\"")
}

/// The kernel's iterator sees one network namespace.
fn elsewhere() -> Result<()> {
    run(
        "pressure",
        "exec unshare -n sh -c 'ip link set lo up; exec \"$EDGES\" \"$@\"' sh",
    )
}

/// A call that redirected bytes do not keep to.
fn released() -> Result<()> {
    run("oob", "exec \"$EDGES\"")
}

/// Of the accelerator, in order or killed: its keeper does it.
fn ended() -> Result<()> {
    for way in WAYS {
        for is_killed in [false, true] {
            left(way, is_killed).with_context(|| format!("{way}, killed: {is_killed}"))?;
        }
    }
    Ok(())
}

fn left(way: &str, is_killed: bool) -> Result<()> {
    let (mut attached, port) = attached(|attach| {
        attach.arg("-q");
    })?;
    let mut edges = Command::new(program("edges")?);
    edges
        .arg("left")
        .args(way.split(' '))
        .arg(&port)
        .stdout(Stdio::piped());
    let mut edges = Target::spawn_now(&mut edges)?;
    let stdout = edges.child().stdout.take().context("stdout")?;
    let mut lines = BufReader::new(stdout).lines();
    let begun = lines.next().context("a line")??;
    ensure!(begun == "sent", "{begun}");
    match is_killed {
        true => attached.child().kill()?,
        false => attached.signal(Signal::SIGINT)?,
    }
    let line = lines.next().context("its end")??;
    expect(&line)?;
    ensure!(edges.wait()?.success(), "{line}");
    attached.child().wait()?;
    Ok(())
}

/// The kernel's iterator waits for a socket that is locked, beyond every signal: hopscope ends before that goes on, and says
/// so, and the reader is told afterwards.
fn stopped() -> Result<()> {
    for way in ["4 forth", "4 back"] {
        stopped_by(way).with_context(|| way.to_owned())?;
    }
    Ok(())
}

fn stopped_by(way: &str) -> Result<()> {
    let (attached, port) = attached(|attach| {
        attach.stdout(Stdio::piped()).stderr(Stdio::piped());
    })?;
    let mut edges = Command::new("unshare");
    edges
        .args([
            "-n",
            "sh",
            "-c",
            "ip link set lo up; exec \"$0\" behind \"$@\"",
        ])
        .arg(program("edges")?)
        .args(way.split(' '))
        .arg(&port)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut edges = Target::spawn_now(&mut edges)?;
    let stdout = edges.child().stdout.take().context("stdout")?;
    let mut stdin = edges.child().stdin.take().context("stdin")?;
    let mut lines = BufReader::new(stdout).lines();
    let begun = lines.next().context("a line")??;
    ensure!(begun == "waits", "{begun}");
    attached.signal(Signal::SIGINT)?;
    let out = attached.output()?;
    let said = String::from_utf8_lossy(&out.stderr);
    ensure!(
        out.status.success() && said.contains("once another reader there goes on"),
        "{said}"
    );
    stdin.write_all(b"\n")?;
    let line = lines.next().context("its end")??;
    expect(&line)?;
    ensure!(edges.wait()?.success(), "{line}");
    Ok(())
}
