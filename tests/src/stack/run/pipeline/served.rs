//! Options of `stack serve`, and what it counts and records, with programs attached.
use super::super::running::{python, words};
use super::instance::{Instance, of_all_engines, on_two_engines};
use crate::stack::cable::{KERNEL, STACK, files};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, Target, hopscope, hopscope_bin};
use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Netns, Python3};
    let needs = &[Netns, Python3];
    suite.case(
        "stack::pipeline_runs_where_it_is_to",
        needs,
        || match processors()?.len() {
            1 => cores(),
            _ => on_two_engines(&cores),
        },
    );
    suite.case("stack::pipeline_is_for_its_user", needs, user);
    suite.case("stack::pipeline_counts_what_programs_do", needs, counts);
    suite.case(
        "stack::pipeline_counts_connects_that_end_early",
        needs,
        ends_early,
    );
}

/// Echoes of one connection of `program`, which then ends.
fn echoes(program: Target, count: usize) -> Result<()> {
    let mut stream = TcpStream::connect((STACK, 7))?;
    for _ in 0..count {
        stream.write_all(&[7; 100])?;
        stream.read_exact(&mut [0; 100])?;
    }
    drop(stream);
    let status = program.wait()?;
    ensure!(status.success(), "{status}");
    Ok(())
}

fn echo_server(instance: &Instance) -> Result<Target> {
    let server = python("echo_server.py", &["threads", STACK, "7", "1"]);
    Target::spawn(&mut instance.run(&[], &words(&server)))
}

/// `Cpus_allowed_list` of its threads.
fn allowed(instance: &Instance) -> Result<BTreeSet<String>> {
    let mut all = BTreeSet::new();
    for task in std::fs::read_dir(format!("/proc/{}/task", instance.pid()))? {
        let status = std::fs::read_to_string(task?.path().join("status"))?;
        let mut lines = status.lines();
        let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        all.insert(list.context(status.clone())?.trim().to_owned());
    }
    Ok(all)
}

/// Those that this process may run on.
fn processors() -> Result<Vec<usize>> {
    let set = sched_getaffinity(Pid::from_raw(0))?;
    let is_set = |cpu: &usize| set.is_set(*cpu).unwrap_or(false);
    Ok((0..CpuSet::count()).filter(is_set).collect())
}

fn cores() -> Result<()> {
    let here = processors()?;
    let ends = [here[here.len() - 1], here[0]].map(|cpu| cpu.to_string());
    let list = ends[..here.len().min(2)].join(",");
    let instance = Instance::start(&[&format!("--cores={list}")])?;
    echoes(echo_server(&instance)?, 10)?;
    let named = BTreeSet::from(ends);
    let found = allowed(&instance)?;
    ensure!(named.is_subset(&found), "{named:?}: {found:?}");
    instance.has_nothing_left()?;
    let instance = Instance::start(&[])?;
    let found = allowed(&instance)?;
    ensure!(here.len() == 1 || named.is_disjoint(&found), "{found:?}");
    instance.has_nothing_left().map(drop)
}

/// Its programs may attach, and those of nobody else but root.
fn user() -> Result<()> {
    // The ready file is its own.
    std::fs::set_permissions(files(), PermissionsExt::from_mode(0o777))?;
    let instance = Instance::start(&["--user=nobody"])?;
    let status = std::fs::read_to_string(format!("/proc/{}/status", instance.pid()))?;
    ensure!(
        status.contains("Uid:\t65534\t65534\t65534\t65534"),
        "{status}"
    );
    let shown = format!("print(socket.create_server(('{STACK}', 7007)).getsockname())");
    let program = format!("import socket; {shown}");
    let plain = instance.run(&[], &["/usr/bin/python3", "-c", &program]);
    let run_by = |id: u32| {
        let mut command = Command::new("setpriv");
        command
            .args([format!("--reuid={id}"), format!("--regid={id}")])
            .arg("--clear-groups")
            .arg(plain.get_program())
            .args(plain.get_args());
        run(&mut command)
    };
    for id in [65_534, 0] {
        let out = run_by(id)?.expect_code(0)?;
        ensure!(out.stdout.contains(STACK), "{id}: {}", out.stdout);
    }
    let out = run_by(1)?.expect_code(125)?;
    ensure!(out.stderr.contains("Permission denied"), "{}", out.stderr);
    instance.has_nothing_left().map(drop)
}

fn counts() -> Result<()> {
    let file = files().join("stack.hop");
    let path = file.to_str().context("a path")?;
    let instance = Instance::start(&["-o", path])?;
    echoes(echo_server(&instance)?, 50)?;
    // Where the instance puts it (`Serving`).
    let name = format!("hopscope-{}.stack-control", std::process::id());
    let control = std::env::temp_dir().join(name);
    let mut stats = Command::new(hopscope_bin());
    stats.args(["stack", "stats", "--prometheus", "--control"]);
    let text = run(stats.arg(control))?.expect_code(0)?.stdout;
    // Which of several engines has the connection is decided by its ports.
    let sum = |row: &str| {
        let row = format!("hopscope_stack_{row}{{engine=");
        let rows = text.lines().filter(|line| line.starts_with(&row));
        let values = rows.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        values.sum::<u64>()
    };
    for (row, count) in [
        ("Tcp_PassiveOpens", 1),
        ("App_Programs", 1),
        ("App_BytesReceived", 5000),
        ("App_BytesSent", 5000),
    ] {
        ensure!(sum(row) == count, "{row} {}: {text}", sum(row));
    }
    let summary = instance.has_nothing_left()?;
    let report = hopscope(&["report", path, "--json"])?.expect_code(0)?;
    let rows: Vec<Value> = report
        .stdout
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    let calls = |name: &str| {
        let row = rows.iter().find(|row| row["function"] == name);
        let calls = row.and_then(|row| row["calls"].as_u64());
        calls.with_context(|| format!("no {name} in {}", report.stdout))
    };
    for name in ["demux", "deliver", "app read", "app write"] {
        ensure!(calls(name)? >= 50, "{name}: {}", report.stdout);
    }
    let of_all = |path: &str| of_all_engines(&summary, path);
    let (received, sent) = (of_all("/port/received")?, of_all("/port/sent")?);
    // What is for everybody each of several engines takes, by a lane: one alone has none.
    let most = received + of_all("/share/received")?;
    let rx = calls("rx")?;
    ensure!((received..=most).contains(&rx), "rx {rx}: {summary}");
    ensure!(calls("tx")? == sent, "tx {sent}: {}", report.stdout);
    Ok(())
}

/// Each connection that has ended was counted when it began: also what is shut down while it connects, and what is refused.
fn ends_early() -> Result<()> {
    let instance = Instance::start(&[])?;
    // Nobody has the address; every other attempt is shut down, which fails it, and not only closed.
    let shut = "s.connect_ex(('10.0.0.77', 9)); n % 2 and s.shutdown(2); s.close()";
    let refused = format!("s.setblocking(True); s.connect_ex(('{KERNEL}', 9)); s.close()");
    let sockets = "import socket\nfor n in range(8):\n s = socket.socket(); s.setblocking(False)";
    let program = format!("{sockets}\n {shut}\n s = socket.socket(); {refused}");
    run(&mut instance.run(&[], &["/usr/bin/python3", "-c", &program]))?.expect_code(0)?;
    let summary = instance.has_nothing_left()?;
    let of_all = |name: &str| of_all_engines(&summary, &format!("/app/{name}"));
    let (accepted, ended, failed) = (of_all("accepted")?, of_all("ended")?, of_all("failed")?);
    ensure!((accepted, ended, failed) == (16, 4, 12), "{summary}");
    Ok(())
}
