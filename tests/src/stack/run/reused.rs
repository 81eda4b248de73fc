//! Descriptors that are closed where no hook sees it, and limits that the kernel has: the same lines on either stack.
use super::acceptance::side::{Mode, Side};
use crate::stack::cable::{KERNEL, STACK};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, compile_c};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Only what hangs takes so long.
const WATCHDOG: Duration = Duration::from_secs(60);

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Gcc, Netns, Python3};
    for mode in Mode::BOTH {
        let name = |what: &str| format!("{}_{what}", mode.prefix());
        suite.case(
            name("leaves_numbers_to_whoever_comes_next"),
            &[Netns, Gcc],
            move || reused(mode),
        );
        suite.case(name("has_the_kernels_limits"), &[Netns, Gcc], move || {
            limits(mode)
        });
        suite.case(
            name("refuses_options_of_the_kernel_alone"),
            &[Netns, Python3],
            move || alone(mode),
        );
    }
}

/// What each connection brings, to its end.
fn collector() -> Result<(u16, Receiver<Result<usize>>)> {
    let listener = TcpListener::bind((KERNEL, 0))?;
    let port = listener.local_addr()?.port();
    let (said, hear) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let said = said.clone();
            std::thread::spawn(move || {
                let all = |mut stream: TcpStream| {
                    stream.set_read_timeout(Some(WATCHDOG))?;
                    let mut bytes = Vec::new();
                    stream.read_to_end(&mut bytes)?;
                    Ok(bytes.len())
                };
                let _ = said.send(stream.map_err(Into::into).and_then(all));
            });
        }
    });
    Ok((port, hear))
}

fn reused(mode: Mode) -> Result<()> {
    const CONNECTIONS: usize = 11;
    let side = Side::new(mode)?;
    let program = compile_c(&["stack/run/reused.c"], &["-O1"])?;
    let program = program.to_str().context("path")?;
    let (port, brought) = collector()?;
    let port = port.to_string();
    let kernel = run(Command::new(program).args([KERNEL, &port]))?.expect_code(0)?;
    let stack = run(&mut side.command(&[program, KERNEL, &port]))?.expect_code(0)?;
    ensure!(kernel.stdout.lines().count() == 14, "{}", kernel.stdout);
    ensure!(
        !kernel.stdout.contains("another number"),
        "{}",
        kernel.stdout
    );
    let same = match mode {
        Mode::Pipeline => kernel.stdout == stack.stdout,
        // Who gets a descriptor of inline's has none of its connection.
        Mode::Inline => {
            let lines = |text: &str| text.lines().take(13).map(String::from).collect::<Vec<_>>();
            lines(&kernel.stdout) == lines(&stack.stdout)
        }
    };
    ensure!(same, "{}became\n{}", kernel.stdout, stack.stdout);
    for _ in 0..2 * CONNECTIONS {
        let bytes = brought.recv_timeout(WATCHDOG)??;
        ensure!(bytes == 0, "{bytes} bytes of a file came");
    }
    side.stops()
}

/// A datagram for whoever sends one; streams are echoed.
fn limits(mode: Mode) -> Result<()> {
    let side = Side::new(mode)?;
    let program = compile_c(&["stack/run/limits.c"], &["-O1"])?;
    let program = program.to_str().context("path")?;
    let listener = TcpListener::bind((KERNEL, 0))?;
    let port = listener.local_addr()?.port();
    let _datagrams = UdpSocket::bind((KERNEL, port))?;
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || -> Result<()> {
                let mut stream = stream?;
                let mut byte = [0];
                while stream.read(&mut byte)? > 0 {
                    stream.write_all(&byte)?;
                }
                Ok(())
            });
        }
    });
    let port = port.to_string();
    let kernel = run(Command::new(program).args([KERNEL, &port, KERNEL]))?.expect_code(0)?;
    let stack = run(&mut side.command(&[program, KERNEL, &port, STACK]))?.expect_code(0)?;
    ensure!(kernel.stdout.lines().count() == 41, "{}", kernel.stdout);
    ensure!(
        kernel.stdout == stack.stdout,
        "{}became\n{}",
        kernel.stdout,
        stack.stdout
    );
    side.stops()
}

/// Whoever filters, and is told that it does, relies on it.
fn alone(mode: Mode) -> Result<()> {
    let side = Side::new(mode)?;
    let line = "import ctypes, fcntl, os, socket, struct
none = ctypes.create_string_buffer(struct.pack('HBBI', 6, 0, 0, 0))
program = struct.pack('HL', 1, ctypes.addressof(none))
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
    for bound in (False, True):
        own = socket.socket(socket.AF_INET, kind)
        if bound:
            own.bind(('10.0.0.2', 0))
        for level, name in ((1, 26), (1, 51), (1, 42), (0, 20)):
            try:
                own.setsockopt(level, name, program)
                print(0)
            except OSError as error:
                print(error.errno)
";
    let out = run(&mut side.command(&["/usr/bin/python3", "-c", line]))?.expect_code(0)?;
    ensure!(out.stdout == "92\n".repeat(16), "{}", out.stdout);
    ensure!(
        out.stderr.contains("option 26 of level 1 is not supported"),
        "{}",
        out.stderr
    );
    if mode == Mode::Inline {
        let line = "import fcntl, os, socket
own = socket.create_server(('10.0.0.2', 7))
try:
    fcntl.fcntl(own, fcntl.F_SETFL, os.O_ASYNC)
except OSError as error:
    print(error.errno)";
        let out = run(&mut side.command(&["/usr/bin/python3", "-c", line]))?.expect_code(0)?;
        ensure!(
            out.stdout == "22\n" && out.stderr.contains("SIGIO"),
            "{}",
            out.stderr
        );
    }
    side.stops()
}
