//! `--trace`: network calls that do not come by the library's hooks.
use super::acceptance::side::{Mode, Side};
use crate::stack::cable::{KERNEL, STACK};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::{Output, run};
use hopscope_tests::{Requirement, Suite, compile_c};
use std::io::{Read, pipe};
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Gcc, Ia32, Netns, Python3, SliceHooks};
    for mode in Mode::BOTH {
        let name = |what: &str| format!("{}_{what}", mode.prefix());
        suite.case(
            name("traces_what_by_passes_the_hooks"),
            &[Netns, Gcc, Python3, SliceHooks],
            move || traced(mode),
        );
        suite.case(
            name("traces_32_bit_calls"),
            &[Netns, Gcc, Ia32, SliceHooks],
            move || compat(mode),
        );
        suite.case(
            name("is_watched_by_nobody_of_its_own"),
            &[Netns, Python3, SliceHooks],
            move || apart(mode),
        );
    }
    suite.case(
        "stack::run_watches_no_daemon_that_hears_nothing",
        &[Netns, Python3, SliceHooks],
        unheard,
    );
    suite.case(
        "stack::run_is_the_first_of_its_processes",
        &[Netns, Python3, SliceHooks],
        first,
    );
    suite.case(
        "stack::pipeline_serves_other_pid_namespaces",
        &[Netns, Python3],
        elsewhere,
    );
    suite.case(
        "stack::run_is_watched_where_sigchld_is_ignored",
        &[Netns, SliceHooks],
        nobody_to_wait_for,
    );
    suite.case(
        "stack::run_says_that_nothing_is_watched",
        &[Netns],
        not_allowed,
    );
}

fn lines<'a>(out: &'a Output, of: &str) -> Vec<&'a str> {
    let words = |line: &&str| line.contains("by-passed") && line.contains(of);
    out.stderr.lines().filter(words).collect()
}

/// After the process's number.
fn is_one(lines: &[&str], ends: &str) -> bool {
    lines.iter().filter(|line| line.ends_with(ends)).count() == 1
}

fn traced(mode: Mode) -> Result<()> {
    let side = Side::new(mode)?;
    let program = compile_c(&["stack/run/by_passing.c"], &["-O1"])?;
    let program = program.to_str().context("path")?;
    let fixed = compile_c(&["stack/run/by_passing.c"], &["-O1", "-static"])?;
    let fixed = fixed.to_str().context("path")?;
    let out = run(&mut side.traced(&[program, STACK, fixed]))?.expect_code(0)?;
    let of_parent = "]: by-passed the hooks: 1 close, 1 close_range, 1 dup2, 1 epoll_ctl, 3 getsockname, 1 ioctl, 1 poll, 3 socket, 1 splice";
    let of_child = "]: by-passed the hooks: 1 getsockname";
    let sums = lines(&out, "hooks: ");
    // The last: a program that nothing can be loaded into, without environment, executed by a call that is not taken.
    let of_executed = "]: by-passed the hooks: 1 socket";
    ensure!(
        sums.len() == 3
            && [of_parent, of_child, of_executed]
                .iter()
                .all(|sum| is_one(&sums, sum)),
        "{}",
        out.stderr
    );
    // Each as it happens, with the file and whose the descriptor is.
    let whose = match mode {
        Mode::Inline => "(IPv4, the stack's or the kernel's)",
        Mode::Pipeline => "(a socket of the stack's)",
    };
    let first = lines(&out, ", from by_passing");
    ensure!(
        first
            .iter()
            .filter(|line| line.contains(&format!("]: getsockname of fd 3 {whose}")))
            .count()
            == 2,
        "{}",
        out.stderr
    );
    // Calls within libc, and none.
    let line =
        "import socket; socket.getaddrinfo('127.0.0.1', 1); socket.socket(); socket.if_nameindex()";
    let out = run(&mut side.traced(&["/usr/bin/python3", "-c", line]))?.expect_code(0)?;
    ensure!(
        out.stderr
            .contains("1 process ended, no network call seen that by-passed the hooks"),
        "{}",
        out.stderr
    );
    let line = "import socket; socket.getaddrinfo('::1', 1, flags=socket.AI_ADDRCONFIG); socket.getaddrinfo(None, 80)";
    let out = run(&mut side.traced(&["/usr/bin/python3", "-c", line]))?.expect_code(0)?;
    ensure!(
        !lines(&out, ", from libc.so.6+0x").is_empty(),
        "{}",
        out.stderr
    );
    side.stops()
}

/// By `int 0x80`.
fn compat(mode: Mode) -> Result<()> {
    let side = Side::new(mode)?;
    let program = compile_c(&["stack/run/by_passing.c"], &["-O1"])?;
    let program = program.to_str().context("path")?;
    let out = run(&mut side.traced(&[program, "compat"]))?.expect_code(0)?;
    let sums = lines(&out, "hooks: ");
    ensure!(is_one(&sums, "hooks: 2 32-bit call"), "{}", out.stderr);
    side.stops()
}

/// What the program inherits and closes is closed, while it runs; its process is the one that was started.
fn apart(mode: Mode) -> Result<()> {
    let side = Side::new(mode)?;
    let (mut from, to) = pipe()?;
    nix::fcntl::fcntl(
        &to,
        nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty()),
    )?;
    let line = format!(
        "import os, sys
os.close({})
assert not [p for p in os.listdir('/proc/self/task') if open(f'/proc/self/task/{{p}}/children').read()]
print(os.getpid(), flush=True)
sys.stdin.read()",
        to.as_raw_fd()
    );
    let mut command = side.traced(&["/usr/bin/python3", "-c", &line]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    drop(to);
    // Waits for ever where somebody has the other end.
    from.read_to_end(&mut Vec::new())?;
    drop(child.stdin.take());
    let mut said = String::new();
    child
        .stdout
        .take()
        .context("pipe")?
        .read_to_string(&mut said)?;
    ensure!(child.wait()?.success(), "it failed");
    ensure!(
        said.trim() == child.id().to_string(),
        "{said}, not {}",
        child.id()
    );
    side.stops()
}

/// Whose starter ignores SIGCHLD, so that there is nobody to wait for.
fn nobody_to_wait_for() -> Result<()> {
    let side = Side::new(Mode::Inline)?;
    let traced = side.traced(&["/bin/true"]);
    let mut command = Command::new("env");
    command.arg("--ignore-signal=CHLD");
    command.arg(traced.get_program()).args(traced.get_args());
    let out = run(&mut command)?.expect_code(0)?;
    ensure!(
        out.stderr.contains("1 process ended") && !out.stderr.contains("not looked for"),
        "{}",
        out.stderr
    );
    side.stops()
}

fn not_allowed() -> Result<()> {
    let side = Side::new(Mode::Inline)?;
    let traced = side.traced(&["/bin/true"]);
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-bpf,-perfmon,-sys_admin", "--inh-caps=-all"]);
    command.arg(traced.get_program()).args(traced.get_args());
    let out = run(&mut command)?.expect_code(0)?;
    let why = "--trace: what by-passes the hooks is not looked for: ";
    ensure!(out.stderr.contains(why), "{}", out.stderr);
    side.stops()
}

/// A daemon that has closed standard error: whoever waits for its end is not made to wait for the daemon's.
fn unheard() -> Result<()> {
    let side = Side::new(Mode::Inline)?;
    let (mut lives, end) = pipe()?;
    let line = format!(
        "import os
if os.fork() == 0:
    os.setsid()
    os.closerange(0, {0})
    os.read({0}, 1)",
        lives.as_raw_fd()
    );
    nix::fcntl::fcntl(
        &lives,
        nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty()),
    )?;
    // Reads standard error to its end, while the daemon is there.
    let out = run(&mut side.traced(&["/usr/bin/python3", "-c", &line]))?.expect_code(0)?;
    let said = "the command has ended; 1 of its processes, which have closed its standard error, are not watched any more";
    ensure!(out.stderr.contains(said), "{}", out.stderr);
    drop(end);
    lives.read_to_end(&mut Vec::new())?;
    side.stops()
}

/// PID 1 has the children of those that end: whoever watches would be its own.
fn first() -> Result<()> {
    let side = Side::new(Mode::Inline)?;
    let line = "import os
if os.fork() == 0:
    os._exit(0)
os.wait()
try:
    os.wait()
except ChildProcessError:
    print('alone')";
    // With and without a /proc of its own.
    for own in [&["--mount-proc"][..], &[]] {
        let traced = side.traced(&["/usr/bin/python3", "-c", line]);
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--kill-child"]).args(own);
        command.arg(traced.get_program()).args(traced.get_args());
        let out = run(&mut command)?.expect_code(0)?;
        ensure!(out.stdout == "alone\n", "{}", out.stdout);
        let why = "(it is PID 1, or a subreaper)";
        ensure!(out.stderr.contains(why), "{}", out.stderr);
    }
    side.stops()
}

/// Where the number of the instance's process is 0.
fn elsewhere() -> Result<()> {
    let side = Side::new(Mode::Pipeline)?;
    let listener = TcpListener::bind((KERNEL, 0))?;
    let line = format!(
        "import socket; print(socket.create_connection(('{KERNEL}', {})).getsockname()[0])",
        listener.local_addr()?.port()
    );
    let there = side.command(&["/usr/bin/python3", "-c", &line]);
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--kill-child", "--mount-proc"]);
    command.arg(there.get_program()).args(there.get_args());
    let out = run(&mut command)?.expect_code(0)?;
    ensure!(
        out.stdout == format!("{STACK}\n"),
        "{}{}",
        out.stdout,
        out.stderr
    );
    drop(listener);
    side.stops()
}
