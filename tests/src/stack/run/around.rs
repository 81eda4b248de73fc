//! What would go round the library: taken by its other names, refused, or said.
use super::acceptance::side::{Mode, Side};
use super::pipeline::instance::Instance;
use super::running::{Server, cable, on_the_stack, python, words};
use crate::stack::cable::{KERNEL, STACK, files};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::requirement::LIBURING;
use hopscope_tests::{Requirement, Suite, compile_c};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Gcc, Liburing, Netns, Python3};
    for mode in Mode::BOTH {
        let name = |what: &str| format!("{}_{what}", mode.prefix());
        suite.case(
            name("knows_other_names_of_calls"),
            &[Netns, Gcc],
            move || other_names(mode),
        );
        suite.case(
            name("leaves_sockets_to_the_kernel"),
            &[Netns, Python3],
            move || kernels(mode),
        );
        suite.case(
            name("refuses_io_uring"),
            &[Netns, Gcc, Liburing],
            move || io_uring(mode),
        );
        suite.case(
            name("says_what_it_does_not_see"),
            &[Netns, Gcc, Python3],
            move || unseen(mode),
        );
        suite.case(
            name("stays_where_the_environment_is_emptied"),
            &[Netns, Python3],
            move || emptied(mode),
        );
    }
    suite.case(
        "stack::run_says_what_exec_cannot_hand_on",
        &[Netns, Python3],
        handed_on,
    );
    suite.case(
        "stack::run_ends_with_the_last_thread",
        &[Netns, Gcc],
        first_thread,
    );
}

/// One connection, on the kernel's stack.
fn echo_once(listener: TcpListener) -> std::thread::JoinHandle<Result<()>> {
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept()?;
        let mut back = stream.try_clone()?;
        std::io::copy(&mut stream, &mut back)?;
        Ok(())
    })
}

fn other_names(mode: Mode) -> Result<()> {
    let side = Side::new(mode)?;
    let program = compile_c(&["stack/run/other_names.c"], &["-O1"])?;
    let program = program.to_str().context("path")?;
    let listener = TcpListener::bind((KERNEL, 0))?;
    let port = listener.local_addr()?.port().to_string();
    let mut said = Vec::new();
    for on_stack in [false, true] {
        let echo = echo_once(listener.try_clone()?);
        let command = [program, KERNEL, &port];
        let out = match on_stack {
            true => side.runs(&command)?,
            false => run(Command::new(program).args(&command[1..]))?.expect_code(0)?,
        };
        echo.join().ok().context("no panic")??;
        said.push(out.stdout);
    }
    ensure!(said[0].lines().count() == 17, "{}", said[0]);
    ensure!(said[0] == said[1], "{}became\n{}", said[0], said[1]);
    side.ends(5)
}

/// By SOCK_KERNEL, which the kernel does not know.
fn kernels(mode: Mode) -> Result<()> {
    let side = Side::new(mode)?;
    let line = "import socket
for bit in (0, 1 << 24, 1 << 25, 3 << 24):
    own = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK | bit)
    try:
        own.bind(('10.0.0.2', 0))
        own.listen()
        print(own.getsockname()[0], own.getblocking())
    except OSError as error:
        print(error.errno)
";
    let mut command = side.command(&["/usr/bin/python3", "-c", line]);
    let out = run(&mut command)?.expect_code(0)?;
    let given: Vec<&str> = out.stdout.lines().collect();
    // EADDRNOTAVAIL: the kernel has no such address.
    let ours = "10.0.0.2 False";
    ensure!(given == [ours, ours, "99", ours], "{}", out.stdout);
    side.stops()
}

fn io_uring(mode: Mode) -> Result<()> {
    let side = Side::new(mode)?;
    let program = compile_c(&["stack/run/uring.c"], &["-O1", LIBURING])?;
    let program = program.to_str().context("path")?;
    let plain = run(&mut Command::new(program))?.expect_code(0)?;
    ensure!(plain.stdout == "0\n0\n", "{}", plain.stdout);
    let out = run(&mut side.command(&[program]))?.expect_code(0)?;
    ensure!(out.stdout == "-38\n-38\n", "{}", out.stdout);
    ensure!(out.stderr.contains("io_uring is refused"), "{}", out.stderr);
    // By its number.
    let line = "import ctypes
print(ctypes.CDLL(None, use_errno=True).syscall(425, 8, 0), ctypes.get_errno())";
    let mut command = side.command(&["/usr/bin/python3", "-c", line]);
    let out = run(&mut command)?.expect_code(0)?;
    ensure!(out.stdout == "-1 38\n", "{}", out.stdout);
    side.stops()
}

/// By whatever call it is executed.
fn unseen(mode: Mode) -> Result<()> {
    let side = Side::new(mode)?;
    let folder = files();
    let fixed = compile_c(&["stack/run/cat.c"], &["-O1", "-static"])?;
    let changes = folder.join("changes");
    std::fs::copy("/bin/true", &changes)?;
    std::os::unix::fs::chown(&changes, Some(65_534), None)?;
    std::fs::set_permissions(&changes, PermissionsExt::from_mode(0o4755))?;
    let mut lines = vec![(format!("subprocess.run([{changes:?}])"), "set-uid")];
    for call in [
        "subprocess.run([P])",
        "os.spawnv(os.P_WAIT, P, [P])",
        "os.waitpid(os.posix_spawn(P, [P], {}), 0)",
        "os.waitpid(os.posix_spawnp(P, [P], os.environ), 0)",
        "os.execv(P, [P])",
        "os.execvpe(P, [P], {})",
        "os.execve(os.open(P, os.O_RDONLY), [P], {})",
        "ctypes.CDLL(None).execvp(P.encode(), (ctypes.c_char_p * 2)(P.encode(), None))",
        "ctypes.CDLL(None).execv(P.encode(), (ctypes.c_char_p * 2)(P.encode(), None))",
    ] {
        lines.push((call.to_owned(), "statically"));
    }
    for (call, why) in lines {
        let line = format!("import ctypes, os, subprocess\nP = {fixed:?}\n{call}\n");
        let mut command = side.command(&["/usr/bin/python3", "-c", &line]);
        let out = run(&mut command)?.expect_code(0)?;
        let said = out
            .stderr
            .lines()
            .filter(|line| line.contains("the kernel's"));
        let said: Vec<&str> = said.collect();
        ensure!(
            said.len() == 1 && said[0].contains(why),
            "{call}: {}",
            out.stderr
        );
    }
    // Memory for an environment is given back: of 400 calls a page each would be left.
    let line = "import os
sizes = []
for _ in range(200):
    os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)
    try:
        os.execve('/nowhere', ['nowhere'], {})
    except OSError:
        sizes.append(int(open('/proc/self/statm').read().split()[0]))
print(sizes[-1] - sizes[0])";
    let out = run(&mut side.command(&["/usr/bin/python3", "-c", line]))?.expect_code(0)?;
    let pages: i64 = out.stdout.trim().parse()?;
    ensure!(pages < 100, "{pages} pages more");
    // One that is seen, and one that is not there.
    let line = "import os, subprocess
subprocess.run(['true'])
try:
    os.execv('/nowhere', ['nowhere'])
except OSError as error:
    print(error.errno)";
    let out = run(&mut side.command(&["/usr/bin/python3", "-c", line]))?.expect_code(0)?;
    ensure!(
        out.stdout == "2\n" && !out.stderr.contains("kernel's"),
        "{}",
        out.stderr
    );
    side.stops()
}

/// env(1) calls execvp.
fn emptied(mode: Mode) -> Result<()> {
    let side = Side::new(mode)?;
    let server = python("echo_server.py", &["threads", STACK, "7", "1"]);
    let ready = files().join("ready");
    let variable = format!("READY_FILE={}", ready.display());
    let mut command = vec!["/usr/bin/env", "-i", &variable];
    command.extend(words(&server));
    let server = side.starts(&command, &ready)?;
    let client = python("echo_client.py", &["threads", STACK, "7", "1", "100000"]);
    run(Command::new(&client[0]).args(&client[1..]))?.expect_code(0)?;
    side.ended(server, None)?;
    side.ends(5)
}

fn handed_on() -> Result<()> {
    cable()?;
    let line = |inheritable: bool| {
        let inheritable = if inheritable { "True" } else { "False" };
        format!(
            "import os, socket
own = socket.create_server(('{STACK}', 7))
own.set_inheritable({inheritable})
os.execv('/bin/true', ['true'])"
        )
    };
    for inheritable in [true, false] {
        let program = ["/usr/bin/python3", "-c", &line(inheritable)];
        let out = run(&mut on_the_stack(&[], &program))?.expect_code(0)?;
        let said = out.stderr.contains("handed on");
        ensure!(said == inheritable, "{inheritable}: {}", out.stderr);
    }
    // It can in pipeline.
    let instance = Instance::start(&[])?;
    let program = ["/usr/bin/python3", "-c", &line(true)];
    let out = run(&mut instance.run(&[], &program))?.expect_code(0)?;
    ensure!(out.stderr.is_empty(), "{}", out.stderr);
    instance.has_nothing_left().map(drop)
}

fn first_thread() -> Result<()> {
    cable()?;
    let program = compile_c(&["stack/run/first_thread.c"], &["-O1", "-pthread"])?;
    let server = Server::start(&[program.to_str().context("path")?, STACK, "7"])?;
    let mut stream = TcpStream::connect((STACK, 7))?;
    stream.set_read_timeout(Some(std::time::Duration::from_secs(60)))?;
    let mut five = [0; 5];
    for _ in 0..100 {
        stream.write_all(b"hello")?;
        stream.read_exact(&mut five)?;
        ensure!(&five == b"hello", "{five:?}");
    }
    drop(stream);
    server.ends()
}
