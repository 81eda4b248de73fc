//! Sockets as streams of stdio, which libc reads and writes itself.
use super::acceptance::side::{Mode, Side};
use crate::stack::cable::KERNEL;
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, compile_c};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::thread::{self, JoinHandle};

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Gcc, Netns};
    for mode in Mode::BOTH {
        suite.case(
            format!("{}_has_streams_of_stdio", mode.prefix()),
            &[Netns, Gcc],
            move || streams(mode),
        );
    }
}

/// Echoes one connection, and gives what came on the next one.
fn peer(listener: TcpListener) -> JoinHandle<Result<String>> {
    thread::spawn(move || {
        let (mut stream, _) = listener.accept()?;
        let mut back = stream.try_clone()?;
        let copied = std::io::copy(&mut stream, &mut back)?;
        back.flush()?;
        drop((stream, back));
        let (mut stream, _) = listener.accept()?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(format!("{copied} {text}"))
    })
}

fn streams(mode: Mode) -> Result<()> {
    let side = Side::new(mode)?;
    let listener = TcpListener::bind((KERNEL, 0))?;
    let port = listener.local_addr()?.port().to_string();
    for options in [&["-O1"][..], &["-O2", "-D_FORTIFY_SOURCE=2"]] {
        let program = compile_c(&["stack/run/streams.c"], options)?;
        let program = program.to_str().context("path")?;
        let mut had = Vec::new();
        for on_stack in [false, true] {
            let echo = peer(listener.try_clone()?);
            let out = match on_stack {
                true => run(&mut side.command(&[program, KERNEL, &port]))?,
                false => run(Command::new(program).args([KERNEL, &port]))?,
            };
            let out = out.expect_code(0)?;
            let came = echo.join().ok().context("no panic")??;
            had.push((out.stdout, came));
        }
        ensure!(had[0].1.ends_with(" at exit"), "{}", had[0].1);
        ensure!(had[0] == had[1], "{:?}\nbecame\n{:?}", had[0], had[1]);
    }
    side.ends(5)
}
