//! nginx under load: a body by IPv4 and IPv6, and requests of wrk, of which all are answered.
use super::super::running::kernel_has_none;
use super::super::tools::{body, nginx};
use super::side::{Mode, Side};
use super::web::started;
use crate::stack::cable::{STACK, STACK_V6, files};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, counts};
use nix::sys::signal::Signal;
use std::process::Command;

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Curl, Netns, Nginx, Wrk};
    for (mode, name, more) in [
        (Mode::Inline, "one_process", "master_process off;"),
        (Mode::Inline, "one_worker", "worker_processes 1;"),
        (Mode::Pipeline, "one_worker", "worker_processes 1;"),
        (Mode::Pipeline, "two_workers", "worker_processes 2;"),
    ] {
        let name = format!("{}_serves_with_nginx_{name}", mode.prefix());
        let case = suite.case(name, &[Netns, Nginx, Curl, Wrk], move || serves(mode, more));
        // A busy machine may take more than an hour for ten million requests.
        case.in_turn().watchdog(counts().pick(300, 7200)).soak = more.contains('2');
    }
}

fn serves(mode: Mode, more: &str) -> Result<()> {
    let side = Side::new(mode)?;
    let folder = files().join("nginx");
    let bytes = body(&folder, counts().pick(5_000_000, 100_000_000))?;
    std::fs::write(folder.join("small"), [b'x'; 600])?;
    let listen = format!("listen {STACK}:80; listen [{STACK_V6}]:80;");
    let plain = nginx(&folder, &listen, &format!("user root; {more}"))?;
    let server = started(&side, &plain, &folder)?;
    kernel_has_none(80)?;
    for host in [STACK.to_owned(), format!("[{STACK_V6}]")] {
        let got = files().join("got");
        let url = format!("http://{host}/body");
        let words = "-sS --max-time 60 --retry 20 --retry-connrefused -o";
        let mut curl = Command::new("curl");
        run(curl.args(words.split(' ')).arg(&got).arg(&url))?.expect_code(0)?;
        ensure!(std::fs::read(&got)? == bytes, "the body differs");
    }
    answers(&["-H", "Connection: close"])?;
    let mut answered = 0;
    let wanted = counts().pick(1, 10_000_000);
    while answered < wanted {
        answered += answers(&[])?;
    }
    side.ended(server, Some(Signal::SIGQUIT))?;
    side.ends(1_000)
}

/// Its own would be 2 s: a time that a busy machine may take.
pub(super) const TIMEOUT: [&str; 2] = ["--timeout", "60s"];

/// How many requests of wrk were answered, all of them in order.
fn answers(more: &[&str]) -> Result<u64> {
    let mut wrk = Command::new("wrk");
    wrk.args(["-t1", "-c64", "-d", counts().pick("1s", "20s")])
        .args(TIMEOUT)
        .args(more)
        .arg(format!("http://{STACK}/small"));
    requests(&run(&mut wrk)?.expect_code(0)?.stdout)
}

/// Of what wrk says: not one of them failed.
pub(super) fn requests(said: &str) -> Result<u64> {
    ensure!(!said.contains("Socket errors"), "{said}");
    ensure!(!said.contains("Non-2xx"), "{said}");
    let words: Vec<&str> = said.split_whitespace().collect();
    let at = words.windows(2).find(|two| two[1] == "requests");
    let count = at.and_then(|two| two[0].parse().ok());
    count.with_context(|| said.to_owned())
}
