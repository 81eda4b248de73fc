//! redis at either end: threads for its connections, saves in the background and copies, all under the load of redis-benchmark.
use super::super::running::{kernel_has_none, until};
use super::side::{End, Mode, Program, Side, on_the_kernel};
use crate::stack::cable::{KERNEL, files};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, Target, counts};
use std::process::{Command, Stdio};

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Netns, Redis};
    let needs = &[Netns, Redis];
    for mode in Mode::BOTH {
        let mut case = |name: &str, soak, run: fn(Mode) -> Result<()>| {
            let name = format!("{}_{name}", mode.prefix());
            let case = suite.case(name, needs, move || run(mode));
            case.in_turn().soak = soak;
        };
        let inline = mode == Mode::Inline;
        case("serves_with_redis", false, |mode| serves(mode, &[]));
        case("serves_with_redis_threads", true, |mode| {
            serves(mode, &THREADS)
        });
        case("copies_with_redis", false, |mode| copies(mode, End::Stack));
        case("copies_from_redis", !inline, |mode| {
            copies(mode, End::Kernel)
        });
        case("connects_to_redis", inline, connects);
    }
}

const THREADS: [&str; 4] = ["--io-threads", "2", "--io-threads-do-reads", "yes"];

/// The kernel is to have no listener at the port of the stack's.
fn port(end: End) -> &'static str {
    match end {
        End::Stack => "6379",
        End::Kernel => "6380",
    }
}

fn server(side: &Side, end: End, more: &[&str]) -> Result<Program> {
    let dir = files().join(format!("redis-{end:?}"));
    std::fs::create_dir_all(&dir)?;
    let ready = dir.join("pid");
    let paths = [&dir, &ready].map(|path| path.to_str().unwrap_or_default());
    let words = [
        "/usr/bin/redis-server",
        "--bind",
        end.address(),
        "--port",
        port(end),
        "--save",
        "",
        "--protected-mode",
        "no",
        "--enable-debug-command",
        "yes",
        "--dir",
        paths[0],
        "--pidfile",
        paths[1],
    ];
    let server = side.starts_at(end, &[&words, more].concat(), &ready)?;
    if end == End::Stack {
        kernel_has_none(6379)?;
    }
    Ok(server)
}

/// What a server answers to a client on the kernel's stack.
fn ask(end: End, words: &[&str]) -> Result<String> {
    let client = ["redis-cli", "-h", end.address(), "-p", port(end)];
    let out = run(&mut on_the_kernel(&[&client, words].concat()))?.expect_code(0)?;
    Ok(out.stdout.trim().to_owned())
}

/// A number of its INFO.
fn number(end: End, name: &str) -> Result<u64> {
    let all = ask(end, &["info"])?;
    let mut lines = all.lines().filter_map(|line| line.trim().split_once(':'));
    let (_, value) = lines.find(|(key, _)| *key == name).context("no field")?;
    Ok(value.parse()?)
}

/// It answers nothing: the connection ends with it.
fn shut_down(side: &Side, server: Program, end: End) -> Result<()> {
    let client = ["redis-cli", "-h", end.address(), "-p", port(end)];
    let words = [&client[..], &["shutdown", "nosave"]].concat();
    let _ = run(&mut on_the_kernel(&words))?;
    side.ended(server, None)
}

/// Writes until it is dropped.
fn load(end: End) -> Result<Target> {
    let words = "-c 20 -r 20000 -d 500 -n 1000000 -t set,sadd,hset -l -q";
    let mut command = Command::new("redis-benchmark");
    command
        .args(["-h", end.address(), "-p", port(end)])
        .args(words.split(' '))
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let load = Target::spawn_now(&mut command)?;
    until("it writes", || {
        Ok(number(end, "total_commands_processed")? > 1_000)
    })?;
    Ok(load)
}

/// A value of many segments comes back.
fn keeps(cli: impl Fn(&[&str]) -> Result<String>) -> Result<()> {
    let value = "v".repeat(100_000);
    ensure!(cli(&["set", "long", &value])? == "OK");
    ensure!(cli(&["get", "long"])? == value, "another value");
    Ok(())
}

/// Its commands, one at a time and many at once.
fn bench(end: End, requests: &str, run: impl Fn(&[&str]) -> Result<()>) -> Result<()> {
    for pipeline in ["1", "16"] {
        let at = ["redis-benchmark", "-h", end.address(), "-p", port(end)];
        let what = ["-c", "50", "-n", requests, "-P", pipeline];
        let tests = ["-t", "set,get,lpush", "--csv"];
        run(&[&at[..], &what, &tests].concat())?;
    }
    Ok(())
}

/// What was saved under load is whole.
fn serves(mode: Mode, more: &[&str]) -> Result<()> {
    let side = Side::new(mode)?;
    let server = server(&side, End::Stack, more)?;
    // On machines of few processors, threads that spin cost a multiple.
    let most = if more.is_empty() { "1000000" } else { "100000" };
    bench(End::Stack, counts().pick("20000", most), |words| {
        run(&mut on_the_kernel(words))?.expect_code(0).map(drop)
    })?;
    if !more.is_empty() {
        // Its threads rest while there are fewer than two connections for each.
        let reads = number(End::Stack, "io_threaded_reads_processed")?;
        ensure!(reads > 1_000, "{reads} reads of threads");
    }
    keeps(|words| ask(End::Stack, words))?;
    let writes = load(End::Stack)?;
    for _ in 0..counts().pick(2, 20) {
        ensure!(ask(End::Stack, &["bgsave"])?.contains("started"));
        until("it is saved", || {
            Ok(number(End::Stack, "rdb_bgsave_in_progress")? == 0)
        })?;
        ensure!(ask(End::Stack, &["info"])?.contains("rdb_last_bgsave_status:ok"));
    }
    drop(writes);
    let dump = files().join("redis-Stack/dump.rdb");
    run(Command::new("redis-check-rdb").arg(&dump))?.expect_code(0)?;
    shut_down(&side, server, End::Stack)?;
    side.ends(1_000)
}

/// A copy at the other end, begun and carried on while somebody writes, is the same in the end.
fn copies(mode: Mode, from: End) -> Result<()> {
    let side = Side::new(mode)?;
    // Otherwise a copy begins after a pause of 5 s (repl-diskless-sync-delay).
    let first = server(&side, from, &["--repl-diskless-sync", "no"])?;
    let writes = load(from)?;
    let to = from.other();
    let second = server(&side, to, &["--replicaof", from.address(), port(from)])?;
    for _ in 0..counts().pick(2, 20) {
        until("it is connected", || {
            Ok(ask(to, &["info", "replication"])?.contains("master_link_status:up"))
        })?;
        let offset = number(to, "master_repl_offset")?;
        until("more comes", || {
            Ok(number(to, "master_repl_offset")? > offset + 1_000_000)
        })?;
        // Its next copy is a new one, too.
        ask(to, &["replicaof", "no", "one"])?;
        ask(to, &["flushall"])?;
        ask(to, &["replicaof", from.address(), port(from)])?;
    }
    drop(writes);
    ask(from, &["set", "last", "there"])?;
    until("all has come", || Ok(ask(to, &["get", "last"])? == "there"))?;
    let same = |what: &[&str]| -> Result<String> {
        let (own, other) = (ask(from, what)?, ask(to, what)?);
        ensure!(own == other, "{own}, {other}");
        Ok(own)
    };
    let keys = same(&["dbsize"])?;
    ensure!(keys.parse::<usize>()? > 1_000, "{keys} keys");
    same(&["debug", "digest"])?;
    shut_down(&side, second, to)?;
    shut_down(&side, first, from)?;
    side.ends(1_000)
}

/// Its clients are on the stack.
fn connects(mode: Mode) -> Result<()> {
    let side = Side::new(mode)?;
    let server = server(&side, End::Kernel, &[])?;
    bench(End::Kernel, counts().pick("20000", "1000000"), |words| {
        side.runs(&[words, &["--threads", "2"]].concat()).map(drop)
    })?;
    let done = number(End::Kernel, "total_commands_processed")?;
    ensure!(done > counts().pick(120_000, 6_000_000), "{done} commands");
    keeps(|words| {
        let client = ["redis-cli", "-h", KERNEL, "-p", port(End::Kernel)];
        let out = side.runs(&[&client, words].concat())?;
        Ok(out.stdout.trim().to_owned())
    })?;
    shut_down(&side, server, End::Kernel)?;
    side.ends(1_000)
}
