//! `record --follow-forks`: children are measured as processes of their own.
use crate::nf::nginx::{Server, answers, children as workers};
use crate::recording::{Recording, Report, command};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, Target, compile_c, hopscope, hopscope_bin, scratch};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Fsgsbase, Gcc, Nginx, Root};
    suite.case("forks::children_are_processes", &[Gcc], children);
    suite.case("forks::parent_that_leaves", &[Gcc], leaves);
    suite.case("forks::restored_with_their_parent", &[Gcc], restored);
    suite.case("forks::restored_without_their_parent", &[Gcc], abandoned);
    suite.case(
        "forks::in_a_pid_namespace_and_past_the_library",
        &[Gcc, Root],
        namespaced,
    );
    suite.case("forks::not_asked_for", &[Gcc], not_asked_for);
    suite
        .case(
            "forks::nginx_workers_after_a_reload",
            &[Root, Fsgsbase, Nginx],
            nginx,
        )
        .in_turn();
}

/// Calls by process and thread, in the order of processes; each process has calls of its own.
fn calls(file: &Path) -> Result<Vec<Vec<u64>>> {
    let file = file.to_str().context("a path in UTF-8")?;
    let out = hopscope(&["report", "--json", "--by", "thread", file])?.expect_code(0)?;
    let mut found: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    let mut pids: BTreeMap<u64, Value> = BTreeMap::new();
    for line in out.stdout.lines() {
        let row: Value = serde_json::from_str(line)?;
        if row["type"] != "function" || row["function"] != "work" {
            continue;
        }
        let number = |field: &str| row[field].as_u64().context("a number");
        let (process, thread) = (number("process")?, number("thread")?);
        let balance = &row["balance"];
        ensure!(balance["entries"] == balance["exits"], "{row}");
        let pid = pids.entry(process).or_insert_with(|| row["pid"].clone());
        ensure!(*pid == row["pid"], "{row}");
        *found.entry((process, thread)).or_default() += number("calls")?;
    }
    let distinct: std::collections::HashSet<String> = pids.values().map(Value::to_string).collect();
    ensure!(distinct.len() == pids.len(), "{pids:?}");
    let of = |process: &u64| {
        let all = found.iter().filter(|((p, _), _)| p == process);
        all.map(|(_, calls)| *calls).collect()
    };
    Ok(pids.keys().map(of).collect())
}

fn started(program: &Path, how: &[&str], file: &Path, follow: bool) -> Result<()> {
    let mut record = Command::new(hopscope_bin());
    record.args(["record", "--no-calibration", "-f", "work"]);
    if follow {
        record.arg("--follow-forks");
    }
    let record = record.arg("-o").arg(file).arg("--").arg(program).args(how);
    run(record)?.expect_code(0)?;
    Report::read(file)?.expect_whole()
}

/// In the order in which they have rings: the parent, one that ends soon, one with a thread, one that forks again and that
/// one, and one that runs another program.
const CHILDREN: [&[u64]; 5] = [&[100], &[200, 50], &[300], &[400], &[500]];

fn children() -> Result<()> {
    let program = compile_c(&["forks.c"], &["-O2", "-pthread"])?;
    let file = scratch().join("forks.hop");
    started(&program, &[], &file, true)?;
    let counted = calls(&file)?;
    let expected: Vec<Vec<u64>> = std::iter::once(&[2000][..])
        .chain(CHILDREN)
        .map(<[u64]>::to_vec)
        .collect();
    ensure!(counted == expected, "{counted:?}");
    Ok(())
}

/// The recording goes on until the last of them has ended.
fn leaves() -> Result<()> {
    let program = compile_c(&["forks.c"], &["-O2", "-pthread"])?;
    let file = scratch().join("leaves.hop");
    started(&program, &["leave"], &file, true)?;
    let mut counted = calls(&file)?;
    ensure!(
        counted.len() == 8 && counted.remove(0) == [1000],
        "{counted:?}"
    );
    // The last two begin together.
    counted[5..].sort();
    let expected: Vec<Vec<u64>> = CHILDREN
        .into_iter()
        .chain([&[300][..], &[400]])
        .map(<[u64]>::to_vec)
        .collect();
    ensure!(counted == expected, "{counted:?}");
    Ok(())
}

/// Ids say nothing of a child that has another pid namespace, or was made by a system call of its own: its rings stay its own.
fn namespaced() -> Result<()> {
    let program = compile_c(&["forks.c"], &["-O2", "-pthread"])?;
    let file = scratch().join("namespaced.hop");
    started(&program, &["elsewhere"], &file, true)?;
    let mut counted = calls(&file)?;
    ensure!(counted.remove(0) == [1000], "{counted:?}");
    counted.sort();
    let mut expected: Vec<Vec<u64>> = CHILDREN.map(<[u64]>::to_vec).to_vec();
    expected.extend([vec![700], vec![700]]);
    expected.sort();
    ensure!(counted == expected, "{counted:?}");
    Ok(())
}

/// Both run on unpatched, with nothing mapped, and can be recorded again.
fn restored() -> Result<()> {
    let program = compile_c(&["forks.c"], &["-O2", "-pthread"])?;
    let mut start = Command::new(&program);
    start
        .arg("wait")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut target = Target::spawn(&mut start)?;
    let pid = target.pid();
    let child = target.child();
    let mut stdin = child.stdin.take().context("stdin")?;
    let mut stdout = BufReader::new(child.stdout.take().context("stdout")?);
    let file = scratch().join("restored.hop");
    let mut record = command(pid, &["work"], &file);
    record.arg("--follow-forks");
    let recording = Recording::start_command(record, &file)?;
    writeln!(stdin, "go on")?;
    let mut line = String::new();
    stdout.read_line(&mut line)?;
    let stays: i32 = line.trim().parse().with_context(|| line.clone())?;
    let said = recording.stop()?;
    let notes = said["notes"].to_string();
    ensure!(notes.contains("6 forked children"), "{notes}");
    for pid in [pid, stays] {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
        ensure!(!maps.contains("memfd:hopscope"), "{pid}: {said}\n{maps}");
    }
    let counted = calls(&file)?;
    ensure!(
        counted.len() == 7 && counted[1..6] == CHILDREN.map(<[u64]>::to_vec),
        "{counted:?}"
    );
    ensure!(counted[6].len() == 1 && counted[6][0] >= 600, "{counted:?}");
    let again = scratch().join("again.hop");
    let mut record = command(stays, &["work"], &again);
    run(record.args(["-d", "300ms"]))?.expect_code(0)?;
    ensure!(Report::read(&again)?.entries("work") > 0);
    writeln!(stdin, "end")?;
    let out = target.output()?;
    ensure!(out.status.success(), "{out:?}");
    Ok(())
}

/// The parent is gone before its child calls anything; when the recording ends, the child runs on.
fn abandoned() -> Result<()> {
    let program = compile_c(&["forks.c"], &["-O2", "-pthread"])?;
    let (file, said) = (scratch().join("abandoned.hop"), scratch().join("said"));
    let mut record = Command::new(hopscope_bin());
    record.args(["record", "--no-calibration", "-f", "work", "--follow-forks"]);
    record.args(["-d", "1s", "-o"]).arg(&file);
    record.arg("--").arg(&program).arg("abandon");
    // The child keeps it open.
    record
        .stdout(fs::File::create(&said)?)
        .stderr(Stdio::null());
    let status = record.status()?;
    let lines = fs::read_to_string(&said)?;
    let stays = lines.lines().find_map(|line| line.parse::<i32>().ok());
    let stays = stays.with_context(|| format!("{status}: {lines}"))?;
    let maps = fs::read_to_string(format!("/proc/{stays}/maps"))?;
    let text = fs::read(format!("/proc/{stays}/comm"))?;
    kill(Pid::from_raw(stays), Signal::SIGTERM)?;
    ensure!(
        text == b"forks\n" || text.starts_with(b"forks-"),
        "{text:?}"
    );
    ensure!(
        status.success() && !maps.contains("memfd:hopscope"),
        "{status}: {maps}"
    );
    let counted = calls(&file)?;
    ensure!(counted.last().is_some_and(|c| c[0] >= 600), "{counted:?}");
    Ok(())
}

fn not_asked_for() -> Result<()> {
    let program = compile_c(&["forks.c"], &["-O2", "-pthread"])?;
    let file = scratch().join("not-asked.hop");
    started(&program, &[], &file, false)?;
    let counted = calls(&file)?;
    ensure!(counted == [[2000]], "{counted:?}");
    Ok(())
}

/// Its number (x86-64).
const EPOLL_WAIT: &str = "232 ";

/// Of nginx only the master is attached to; what a reload starts answers, and is measured.
fn nginx() -> Result<()> {
    let dir = scratch();
    let server = Server::start(&dir)?;
    let before = answers(server.port)?;
    let master = server.target.pid();
    let old = workers(master)?;
    let file = dir.join("nginx.hop");
    let mut record = command(master, &["nginx!*"], &file);
    record.args(["--follow-forks", "--assume-no-exceptions"]);
    let recording = Recording::start_command(record, &file)?;
    server.target.signal(Signal::SIGHUP)?;
    let new = loop {
        let mut now = workers(master)?;
        now.retain(|pid| !old.contains(pid));
        // Each waits for connections.
        let waits = |pid: &i32| {
            let call = fs::read_to_string(format!("/proc/{pid}/syscall"));
            call.is_ok_and(|call| call.starts_with(EPOLL_WAIT))
        };
        if now.len() == 2 && now.iter().all(waits) {
            break now;
        }
        std::thread::yield_now();
    };
    ensure!(
        answers(server.port)? == before,
        "different answers while measured"
    );
    let said = recording.stop()?;
    for pid in new.iter().chain([&master]) {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
        ensure!(!maps.contains("hopscope-rings"), "{pid}: {said}\n{maps}");
    }
    ensure!(
        answers(server.port)? == before,
        "different answers afterwards"
    );
    let path = file.to_str().context("a path in UTF-8")?;
    let out = hopscope(&["report", "--json", "--by", "thread", path])?.expect_code(0)?;
    let rows = out.stdout.lines().map(serde_json::from_str);
    let rows: Vec<Value> = rows.collect::<std::result::Result<_, _>>()?;
    for pid in new {
        let its = rows
            .iter()
            .filter(|row| row["type"] == "function" && row["pid"] == pid);
        let called: u64 = its.filter_map(|row| row["calls"].as_u64()).sum();
        ensure!(called > 0, "nothing of worker {pid}: {said}");
    }
    server.stop(&dir)
}
