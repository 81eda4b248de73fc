//! Answers in pieces: in one segment where one piece follows the other, and none waits for long where none follows. Answers to what the
//! program was told of at once: in one call of the kernel.
use super::running::{Server, cable, python, words};
use crate::recording::{Recording, Report};
use crate::stack::cable::{STACK, files};
use anyhow::{Context, Result, bail, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, compile};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

pub(crate) fn register(suite: &mut Suite) {
    let needs = &[Requirement::Netns, Requirement::Python3];
    suite.case("stack::run_sends_answers_whole", needs, whole);
    let needs = &[Requirement::Netns, Requirement::Gcc];
    suite.case(
        "stack::run_sends_answers_of_a_round_at_once",
        needs,
        at_once,
    );
}

const ANSWERS: u32 = 1000;

fn whole() -> Result<()> {
    cable()?;
    let fifo = files().join("fifo");
    mkfifo(&fifo, Mode::S_IRWXU)?;
    let (fifo, answers) = (fifo.display().to_string(), ANSWERS.to_string());
    let program = |how: &str| python("pieces.py", &[how, STACK, &answers, &fifo]);
    let server = Server::start(&words(&program("serves")))?;
    let client = program("asks");
    let said = run(Command::new(&client[0]).args(&client[1..]))?.expect_code(0)?;
    let figures = said.stdout.lines().map(str::parse::<u32>);
    let figures = figures.collect::<Result<Vec<u32>, _>>()?;
    let [kept, short] = figures[..] else {
        bail!("{}", said.stdout)
    };
    // The first answer is in two, and some after the server lost its processor between two pieces.
    ensure!(
        (ANSWERS..ANSWERS * 3 / 2).contains(&kept),
        "{kept} segments for {ANSWERS} answers"
    );
    // Of a connection: SYN, what acknowledges the request or the answer, and the end, by itself or with the answer.
    ensure!(
        (3 * ANSWERS..3 * ANSWERS + ANSWERS / 2).contains(&short),
        "{short} segments for {ANSWERS} connections"
    );
    server.ends()
}

const CONNECTIONS: usize = 16;
const ROUNDS: usize = 200;

fn at_once() -> Result<()> {
    cable()?;
    let program = compile("gcc", &["stack/run/rounds.c"], &["-O2"])?;
    let program = program.to_str().context("a path in UTF-8")?;
    let (connections, rounds) = (CONNECTIONS.to_string(), ROUNDS.to_string());
    let server = Server::start(&[program, STACK, "7", &connections, &rounds])?;
    let clients = (0..CONNECTIONS).map(|_| TcpStream::connect((STACK, 7)));
    let mut clients = clients.collect::<Result<Vec<_>, _>>()?;
    let file = files().join("rounds.hop");
    let recording = Recording::start(server.pid(), &["libc*!sendmmsg", "*!epoll_wait"], &file)?;
    for round in 0..ROUNDS {
        for client in &mut clients {
            client.write_all(&[round as u8])?;
        }
        for client in &mut clients {
            let mut back = [0];
            client.read_exact(&mut back)?;
            ensure!(back == [round as u8], "{back:?} in round {round}");
        }
    }
    recording.stop()?;
    drop(clients);
    let sent = Report::read(&file)?.entries("sendmmsg");
    // Those that lost the processor amid a round leave with more calls than one.
    let least = ROUNDS as u64;
    ensure!(
        (least..least * CONNECTIONS as u64 / 2).contains(&sent),
        "{sent} calls for {ROUNDS} rounds of {CONNECTIONS} answers"
    );
    server.ends()
}
