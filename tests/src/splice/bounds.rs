//! What lies unread, and in which order it is read.
use super::scene::{Done, program, splice, splice_as_it_is, text};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run as command;
use hopscope_tests::counts;
use std::process::Command;

fn stream(options: &[&str], mode: &str) -> Result<Done> {
    let stream = program("stream")?;
    let environment = [("STREAM", text(&stream)?)];
    splice(options, &format!("\"$STREAM\" {mode}"), &environment)
}

/// A reader that reads in bursts: again and again bytes that took the short cut lie before bytes that
/// took TCP.
pub(super) fn order() -> Result<()> {
    let total: u64 = counts().pick(200 << 20, 8 << 30);
    let done = stream(&[], &format!("bursts {total}"))?;
    done.expect_code(0)?;
    done.expect_adds_up()?;
    ensure!(
        done.said()?["bytes"].as_u64() == Some(total)
            && done.count("switches_to_tcp")? >= 5
            && done.count("switches_to_direct")? >= 5
            // Of what takes TCP the kernel does not ask about every piece: after a send that would have
            // had to wait, the next one goes the same way unasked (psock->eval, net/ipv4/tcp_bpf.c).
            && done.count("direct_bytes")? < total,
        "{}",
        done.summary
    );
    Ok(())
}

/// A writer whose peer does not read gets rid of at most twice what plain TCP takes. Without the guard it is a
/// hundred times as much.
pub(super) fn slow_reader() -> Result<()> {
    let plain = command(Command::new(program("stream")?).arg("unread"))?.expect_code(0)?;
    let plain: serde_json::Value = serde_json::from_str(plain.stdout.trim())?;
    let plain = plain["unread"].as_u64().context("unread")?;
    let unread = |options: &[&str]| -> Result<u64> {
        let done = stream(options, "unread")?;
        done.expect_code(0)?;
        done.said()?["unread"].as_u64().context("unread")
    };
    let guarded = unread(&[])?;
    ensure!(
        guarded <= 2 * plain,
        "{guarded} bytes unread, plain TCP {plain}"
    );
    let small = unread(&["--limit", "64K"])?;
    ensure!(
        small <= 2 * plain,
        "{small} bytes unread, plain TCP {plain}"
    );
    let unguarded = unread(&["--no-guard"])?;
    ensure!(
        unguarded > 50 * plain,
        "without the guard {unguarded} bytes, plain TCP {plain}: what holds them back?"
    );
    Ok(())
}

/// Sizes that are set once a connection is joined count from then on: of messages that were paid for before, too.
pub(super) fn lowered() -> Result<()> {
    let lowered = program("lowered")?;
    let plain = command(&mut Command::new(&lowered))?.expect_code(0)?;
    let plain: serde_json::Value = serde_json::from_str(plain.stdout.trim())?;
    let done = splice_as_it_is(&[], "exec \"$LOWERED\"", &[("LOWERED", text(&lowered)?)])?;
    done.expect_code(0)?;
    done.expect_adds_up()?;
    let [plain, most] = [&plain, &done.said()?].map(|said| said["most"].as_u64());
    let plain = plain.context("most")?;
    // The kernel makes 8 KiB of each; TCP takes some more behind them.
    ensure!(
        done.count("connections")? == 8 && most.is_some_and(|most| most <= plain + (16 << 10)),
        "{most:?} bytes, plain TCP {plain}: {}",
        done.summary
    );
    Ok(())
}
