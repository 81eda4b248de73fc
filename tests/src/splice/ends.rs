//! What programs would notice: connections of programs that could tell stay on TCP, each with its reason.
use super::scene::{Done, dir, program, splice, splice_as_it_is, text};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run as command;
use hopscope_tests::{Requirement, Suite, compile_c, counts, hopscope, programs};
use std::path::{Path, PathBuf};
use std::process::Command;

pub(super) fn register(suite: &mut Suite) {
    use Requirement::{Gcc, Perl, Python3, Root, Splice};
    let here = &[Root, Splice, Gcc];
    suite.case("splice::ends_that_never_wait_are_joined", here, joined);
    suite.case(
        "splice::a_receive_that_waits_is_not_told_eagain",
        here,
        waiting,
    );
    suite.case("splice::users_are_kept_apart", here, users);
    suite.case(
        "splice::options_that_redirection_ignores_take_tcp",
        here,
        options,
    );
    suite.case("splice::waitall_does_not_hang", here, waitall);
    suite.case(
        "splice::a_library_that_is_loaded_later_is_found",
        here,
        loaded_later,
    );
    suite.case(
        "splice::scripts_that_may_ask_fionread_stay_on_tcp",
        &[Root, Splice, Python3, Perl],
        scripts,
    );
    suite.case("splice::one_way_transfers_are_released", here, one_way);
    suite.case(
        "splice::near_a_memory_limit_messages_take_tcp",
        here,
        memory,
    );
}

pub(super) fn built() -> Result<PathBuf> {
    compile_c(&["splice/ends.c"], &["-O2", "-Wall", "-pthread"])
}

fn ends(options: &[&str], words: &str) -> Result<Done> {
    let ends = built()?;
    let done = splice_as_it_is(
        options,
        &format!("\"$ENDS\" {words}"),
        &[("ENDS", text(&ends)?)],
    )?;
    done.expect_code(0)?;
    done.expect_adds_up()?;
    Ok(done)
}

fn expect(done: &Done, counters: &[(&str, u64)]) -> Result<()> {
    for (name, value) in counters {
        ensure!(done.count(name)? == *value, "{name}: {}", done.summary);
    }
    Ok(())
}

fn joined() -> Result<()> {
    let done = ends(&[], "exchange 1500")?;
    expect(&done, &[("connections", 1), ("ends_left", 2)])?;
    ensure!(
        done.count("direct_messages")? > 100 * done.count("tcp_messages")?,
        "{}",
        done.summary
    );
    Ok(())
}

/// Whatever wakes it, it is told what it is told by TCP.
fn waiting() -> Result<()> {
    for mode in ["handler", "stop", "reset", "shut"] {
        let plain = command(Command::new(built()?).args(["wait", mode]))?.expect_code(0)?;
        let done = ends(&[], &format!("wait {mode}"))?;
        ensure!(
            done.output.stdout == plain.stdout,
            "{mode}: {} {}",
            done.output.stdout,
            plain.stdout
        );
        expect(&done, &[("plain_blocking", 1), ("connections", 0)])?;
    }
    // A program that begins to wait once it is joined.
    let done = ends(&[], "turn")?;
    ensure!(done.said()?["received"] == 6, "{}", done.output.stdout);
    expect(&done, &[("released_blocking", 1), ("connections", 1)])
}

/// A receiver that stops inside its call holds up whoever sends to it: not across users.
fn users() -> Result<()> {
    let done = ends(&[], "exchange 800 65534")?;
    expect(&done, &[("plain_other_user", 1), ("ends_joined", 0)])?;
    let done = ends(&["--across-users"], "exchange 800 65534")?;
    expect(&done, &[("plain_other_user", 0), ("connections", 1)])
}

/// As a runtime loads what asks FIONREAD only when it is needed: what is joined by then is released, and further
/// connections do not join.
fn loaded_later() -> Result<()> {
    let must_refuse = u64::from(fionread_is_broken()?);
    let library = compile_c(&["splice/asks.c"], &["-O2", "-shared", "-fPIC"])?;
    let named = dir().join("libSystem.Native.so");
    std::fs::copy(library, &named)?;
    let done = ends(&[], &format!("late {}", text(&named)?))?;
    expect(
        &done,
        &[
            ("connections", 2 - must_refuse),
            ("released_refused", must_refuse),
            ("plain_refused", must_refuse),
        ],
    )
}

/// The request is no instruction of an interpreter's: it is left out by its name, in whatever version, and is told how
/// much can be read; allowed by a name without its whole version, it joins.
fn scripts() -> Result<()> {
    let folder = programs().join("splice");
    let must_refuse = fionread_is_broken()?;
    for (interpreter, script) in [("python3", "available.py"), ("perl", "available.pl")] {
        let script = folder.join(script);
        let run = |options: &[&str]| {
            let words = "exec \"$INTERPRETER\" \"$SCRIPT\" 100";
            let environment = [("INTERPRETER", interpreter), ("SCRIPT", text(&script)?)];
            let done = splice(options, words, &environment)?;
            done.expect_code(0)?;
            done.expect_adds_up()?;
            Ok::<Done, anyhow::Error>(done)
        };
        let done = run(&[])?;
        let said = done.said()?;
        ensure!(said["wrong"] == 0 && said["asked"] != 0, "{said}");
        // Kernels that answer right join them.
        let (refused, joined) = (u64::from(must_refuse), u64::from(!must_refuse));
        expect(
            &done,
            &[("plain_refused", refused), ("connections", joined)],
        )?;
        let done = run(&["--allow", interpreter])?;
        expect(&done, &[("plain_refused", 0), ("connections", 1)])?;
    }
    Ok(())
}

fn fionread_is_broken() -> Result<bool> {
    let check = hopscope(&["check", "splice", "--json"])?.expect_code(0)?;
    let broken = |line: &str| line.contains("\"fionread-tcp\"") && line.contains("\"broken\"");
    Ok(check.stdout.lines().any(broken))
}

/// Fewer bytes than `SO_RCVLOWAT` asks for wake nobody.
fn options() -> Result<()> {
    let done = ends(&[], "lowat")?;
    let said = done.said()?;
    ensure!(said["early"] == 0 && said["then"] == 1, "{said}");
    expect(&done, &[("connections", 1), ("released_options", 1)])?;
    ensure!(done.count("tcp_reader_options")? >= 1, "{}", done.summary);
    Ok(())
}

/// Bytes that are redirected while a receive waits for bytes of TCP would never be seen by it.
fn waitall() -> Result<()> {
    let done = ends(&["--blocking"], "waitall")?;
    ensure!(done.said()?["bytes"] == 1_500_010, "{}", done.output.stdout);
    expect(&done, &[("connections", 1)])
}

fn one_way() -> Result<()> {
    let mib: u64 = counts().pick(6000, 20_000);
    let done = ends(&[], &format!("one-way {mib}"))?;
    ensure!(done.said()?["bytes"] == mib << 20, "{}", done.output.stdout);
    expect(&done, &[("connections", 1), ("released_one_way", 1)])
}

/// A group whose TCP memory is bounded (cgroup v1, `memory.kmem.tcp.limit_in_bytes`).
struct Bounded(PathBuf);

impl Bounded {
    fn new(bytes: u64) -> Result<Option<Bounded>> {
        let mounts = std::fs::read_to_string("/proc/self/mounts")?;
        let root = mounts.lines().find_map(|line| {
            let mut words = line.split(' ').skip(1);
            let (path, kind, options) = (words.next()?, words.next()?, words.next()?);
            (kind == "cgroup" && options.split(',').any(|one| one == "memory")).then_some(path)
        });
        let Some(root) = root.map(Path::new) else {
            return Ok(None);
        };
        let group = Bounded(root.join(format!("hopscope-test-{}", std::process::id())));
        std::fs::create_dir_all(&group.0)?;
        let limit = group.0.join("memory.kmem.tcp.limit_in_bytes");
        if !limit.exists() {
            return Ok(None);
        }
        std::fs::write(&limit, bytes.to_string())?;
        Ok(Some(group))
    }
}

impl Drop for Bounded {
    fn drop(&mut self) {
        // What is left of it does no harm.
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// Forty connections to one reader that is slow, and may have 8 MiB: as by TCP, no send fails.
fn memory() -> Result<()> {
    let Some(group) = Bounded::new(8 << 20)? else {
        eprintln!("no groups whose TCP memory can be bounded: nothing to try");
        return Ok(());
    };
    let program = program("many")?;
    let script = format!(
        "echo 0 > {}/cgroup.procs; exec \"$MANY\" 40",
        group.0.display()
    );
    let done = splice_as_it_is(&["--blocking"], &script, &[("MANY", text(&program)?)])?;
    done.expect_code(0)?;
    done.expect_adds_up()?;
    let said = done.said()?;
    ensure!(
        said["failed"] == 0 && said["received"] == 40u64 << 20,
        "{said}"
    );
    let near = done.count("tcp_memory").context("counted")?;
    ensure!(
        near > 0 && done.count("connections")? == 40,
        "{}",
        done.summary
    );
    Ok(())
}
