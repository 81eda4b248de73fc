//! Answers in pieces: in one segment where one piece follows the other, and none waits for long where none follows.
use super::running::{Server, cable, python, words};
use crate::stack::cable::{STACK, files};
use anyhow::{Result, bail, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use std::process::Command;

pub(crate) fn register(suite: &mut Suite) {
    let needs = &[Requirement::Netns, Requirement::Python3];
    suite.case("stack::run_sends_answers_whole", needs, whole);
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
