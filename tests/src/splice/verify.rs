//! `--verify`: what is verified is all that programs exchanged, what is spoilt is found, and what was not
//! watched is never said to be verified.
use super::plain::serve_and_test;
use super::programs;
use super::scene::{ANYWAY, AT_ONCE, Done, dir, program, splice, text};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run as command;
use hopscope_tests::{Requirement, Suite, Target, compile_c, counts, hopscope, hopscope_bin};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

pub(super) fn register(suite: &mut Suite) {
    use Requirement::{Gcc, Haproxy, Python3, Redis, Root, Splice};
    let here = &[Root, Splice, Gcc];
    suite.case("splice::verify_has_every_byte", here, every_byte);
    suite.case(
        "splice::verify_has_every_byte_of_redis",
        &[Root, Splice, Redis],
        redis,
    );
    suite.case(
        "splice::verify_has_every_byte_of_haproxy",
        &[Root, Splice, Haproxy, Python3],
        haproxy,
    );
    suite.case(
        "splice::verify_has_every_byte_of_asyncio",
        &[Root, Splice, Python3],
        asyncio,
    );
    suite.case("splice::verify_finds_what_is_spoilt", here, spoilt);
    suite.case("splice::verify_says_what_it_did_not_see", here, unseen);
    suite.case("splice::verify_tells_of_open_connections", here, open);
    suite.case(
        "splice::verify_finds_what_is_lost_of_open_connections",
        here,
        lost_while_open,
    );
}

const VERIFY: &[&str] = &["--verify"];

/// Messages of all sizes, ends of all kinds; and a stream that changes its way often, most of whose bytes
/// TCP takes without the accelerator being asked.
fn every_byte() -> Result<()> {
    let done = serve_and_test(VERIFY, counts().pick("600", "20000"), "50")?;
    done.expect_code(0)?;
    let said = done.said()?["bytes"].as_u64().context("bytes")?;
    done.expect_verified(2 * said)?;
    let total: u64 = counts().pick(100 << 20, 4 << 30);
    let stream = program("stream")?;
    let script = format!("\"$STREAM\" bursts {total}");
    let done = splice(VERIFY, &script, &[("STREAM", text(&stream)?)])?;
    done.expect_code(0)?;
    done.expect_verified(total)
}

/// What redis's clients leave unread when they close is not theirs to say.
fn redis() -> Result<()> {
    expect_nearly_all(&programs::redis_with(VERIFY)?)
}

fn haproxy() -> Result<()> {
    expect_nearly_all(&programs::haproxy_with(VERIFY)?)
}

fn expect_nearly_all(done: &Done) -> Result<()> {
    let moved = done.count("direct_bytes")? + done.count("tcp_bytes")?;
    ensure!(
        done.verdicts()? == 2 * done.count("connections")?
            && done.count("mismatched_directions")? == 0
            && done.count("verified_bytes")? > moved / 10 * 9,
        "{}",
        done.summary
    );
    Ok(())
}

/// 105,271 bytes each way (asyncio_client.py).
fn asyncio() -> Result<()> {
    let done = programs::asyncio_with(VERIFY)?;
    done.expect_verified(done.count("connections")? * 2 * 105_271)
}

/// A byte that changes or goes missing on the way, in a few of many connections.
fn spoilt() -> Result<()> {
    let done = serve_and_test(&["--verify", "--change-each", "150"], "200", "20")?;
    done.expect_code(1)?;
    let said = done.said()?;
    let mismatched = done.count("mismatched_directions")?;
    let lines = done.output.stderr.lines();
    let lines = lines.filter(|line| line.contains("MISMATCH: 127.0.0.1:"));
    ensure!(
        said["corrupt"].as_u64() > Some(0)
            // An answer that was changed on both ways is right again, and both are found.
            && Some(mismatched) >= said["corrupt"].as_u64()
            && lines.count() as u64 == mismatched
            && done.verdicts()? == 2 * done.count("connections")?,
        "{said} {} {}",
        done.summary,
        done.output.stderr
    );
    let lost = calls(&["--verify", "--lose-each", "1"], "end")?;
    lost.expect_code(1)?;
    ensure!(
        lost.count("mismatched_directions")? == 1
            && lost
                .output
                .stderr
                .contains("bytes are missing (25000 bytes sent"),
        "{} {}",
        lost.summary,
        lost.output.stderr
    );
    Ok(())
}

fn calls(options: &[&str], case: &str) -> Result<Done> {
    let calls = compile_c(&["splice/calls.c"], &["-O2", "-Wall", "-pthread"])?;
    splice(
        options,
        &format!("\"$CALLS\" {case}"),
        &[("CALLS", text(&calls)?)],
    )
}

/// One direction is empty, and is what was sent; the other one is as the case has it.
fn unseen() -> Result<()> {
    for (case, verdict) in [
        ("pieces", "verified"),
        ("peek", "verified"),
        ("end", "verified"),
        ("sendfile", "unverified_unseen"),
        ("splice", "unverified_unseen"),
        ("sendmmsg", "unverified_unseen"),
        ("unread", "unverified_unread"),
        ("together", "unverified_together"),
        ("large", "unverified_unreadable"),
    ] {
        let done = calls(VERIFY, case)?;
        done.expect_code(0)?;
        if verdict == "verified" {
            let bytes = done.said()?["bytes"].as_u64().context("bytes")?;
            done.expect_verified(bytes)?;
            continue;
        }
        ensure!(
            done.count("verified_directions")? == 1
                && done.count("verified_bytes")? == 0
                && done.count(verdict)? == 1,
            "{case}: {}",
            done.summary
        );
    }
    // Both ends of the echo, by io_uring at one of them.
    let script = r#"
"$HOPSCOPE" -q splice echo --mode uring --listen 127.0.0.1:0 --ready-file "$DIR/listens" & server=$!
until [ -e "$DIR/listens" ]; do :; done
"$TESTER" 127.0.0.1 "$(cut -d: -f2 "$DIR/listens")" 30 10; code=$?
kill $server; wait $server
exit $code
"#;
    let tester = program("tester")?;
    let bin = hopscope_bin();
    let environment = [
        ("DIR", text(dir())?),
        ("TESTER", text(&tester)?),
        ("HOPSCOPE", text(&bin)?),
    ];
    let done = splice(&["--verify", "--allow", "hopscope"], script, &environment)?;
    done.expect_code(0)?;
    ensure!(
        done.count("unverified_unseen")? == 60 && done.verdicts()? == 60,
        "{}",
        done.summary
    );
    Ok(())
}

/// A server that runs, attached to with `--verify`, and a connection of ours to it.
struct Attached {
    server: Target,
    attached: Target,
    ours: TcpStream,
}

impl Attached {
    fn start(options: &[&str]) -> Result<Attached> {
        let fifo = dir().join("port");
        command(Command::new("mkfifo").arg(&fifo))?.expect_code(0)?;
        let server =
            Target::spawn_now(Command::new(program("server")?).arg("127.0.0.1").arg(&fifo))?;
        let port = std::fs::read_to_string(&fifo)?.trim().to_owned();
        let ready = dir().join("ready");
        let mut attach = Command::new(hopscope_bin());
        attach
            .args(["-q", "splice", "attach", ANYWAY, AT_ONCE, "--json"])
            .args(["--verify", "--port", &port, "-p"])
            .arg(server.pid().to_string())
            .args(options)
            .arg("--ready-file")
            .arg(&ready)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let attached = Target::spawn_with_ready_file(&mut attach, &ready)?;
        let ours = TcpStream::connect(("127.0.0.1", port.parse()?))?;
        Ok(Attached {
            server,
            attached,
            ours,
        })
    }

    /// The summary, what was said, and whether all was well; the connection stays open.
    fn detach(self) -> Result<(Value, String, bool)> {
        let pid = self.attached.pid().to_string();
        hopscope(&["splice", "detach", "--of", &pid])?;
        let out = self.attached.output()?;
        let last = serde_json::from_slice(&out.stdout).context("the summary")?;
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        self.server.signal(Signal::SIGTERM)?;
        Ok((last, said, out.status.success()))
    }
}

/// A connection that goes on after the accelerator: what it was so far.
fn open() -> Result<()> {
    let mut one = Attached::start(&[])?;
    let mut back = [0; 9000];
    one.ours.write_all(&[7; 9000])?;
    one.ours.read_exact(&mut back)?;
    ensure!(back == [7; 9000], "other bytes");
    let pid = one.attached.pid().to_string();
    let stat = hopscope(&["splice", "stat", "--of", &pid, "--json"])?.expect_code(0)?;
    let stat: Value = serde_json::from_str(&stat.stdout)?;
    ensure!(
        stat["verify"] == true && stat["verified_directions"] == 0,
        "{stat}"
    );
    let (last, said, is_well) = one.detach()?;
    ensure!(
        is_well
            && last["connections"] == 1
            && last["verified_open"] == 2
            && last["verified_bytes"] == 18_000
            && last["unverified_open"] == 0,
        "{last} {said}"
    );
    Ok(())
}

/// A byte of each redirected message is lost on a connection that goes on: found when the accelerator ends. What was
/// sent while the other end was within a call goes by TCP, whole.
fn lost_while_open() -> Result<()> {
    let mut one = Attached::start(&["--lose-each", "1"])?;
    one.ours
        .set_read_timeout(Some(std::time::Duration::from_secs(1)))?;
    let mut back = Vec::new();
    let mut written = 0;
    while back.len() == written {
        one.ours.write_all(&[7; 9000])?;
        written += 9000;
        ensure!(written <= 900_000, "no message was redirected");
        // Until nothing comes any more.
        let _ = (&one.ours).take(9000).read_to_end(&mut back);
    }
    let (last, said, is_well) = one.detach()?;
    let mismatched = last["mismatched_directions"].as_u64();
    let missing: Vec<u64> = said.lines().filter_map(missing_bytes).collect();
    ensure!(
        !is_well
            && mismatched >= Some(1)
            && mismatched == Some(missing.len() as u64)
            && last["verified_open"] == 2 - missing.len()
            && last["direct_messages"] == missing.iter().sum::<u64>(),
        "{last} {said}"
    );
    Ok(())
}

/// Of a line "… bytes are missing (9000 bytes sent, 8999 received)".
fn missing_bytes(line: &str) -> Option<u64> {
    let (_, said) = line.split_once("bytes are missing (")?;
    let (sent, received) = said.split_once(" bytes sent, ")?;
    let received = received.split_once(" received")?.0;
    sent.parse::<u64>()
        .ok()?
        .checked_sub(received.parse().ok()?)
}
