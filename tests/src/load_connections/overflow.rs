//! A listener whose queue is too short drops connections, and no socket ever hears of it: the
//! kernel's counters say so.
use super::{balance, number, servers, summary};
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, command};
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, bind, listen, socket,
};
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::thread;

pub(super) fn register(suite: &mut Suite) {
    let needs = &[Requirement::Root, Requirement::Netns];
    suite.case(
        "load_connections::a_short_accept_queue_is_reported",
        needs,
        short_queue,
    );
    suite.case("load_connections::a_long_one_is_not", needs, long_queue);
}

/// A network namespace of this test's own: other traffic does not count there, and it goes with
/// this process.
fn own_namespace() -> Result<()> {
    unshare(CloneFlags::CLONE_NEWNET).context("a network namespace")?;
    command::run(Command::new("ip").args(["link", "set", "lo", "up"]))?.expect_code(0)?;
    Ok(())
}

fn overflows() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/net/netstat")?;
    let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
    let (names, values) = (
        lines.next().context("names")?,
        lines.next().context("values")?,
    );
    let mut pairs = names.split(' ').zip(values.split(' '));
    let found = pairs.find(|(name, _)| *name == "ListenOverflows");
    Ok(found.context("no ListenOverflows")?.1.parse()?)
}

/// Nobody is accepted before the queue of five has overflowed; then everybody is.
fn short_queue() -> Result<()> {
    own_namespace()?;
    let fd = socket(
        AddressFamily::Inet,
        SockType::Stream,
        SockFlag::empty(),
        None,
    )?;
    bind(fd.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, 0))?;
    listen(&fd, Backlog::new(5)?)?;
    let listener = TcpListener::from(fd);
    let target = listener.local_addr()?.to_string();
    thread::spawn(move || {
        // A new thread of this process: the same namespace, so the same counters.
        while overflows().is_ok_and(|count| count == 0) {
            thread::yield_now();
        }
        servers::serve(listener, |_, _| {});
    });
    let run = summary(&["echo", &target, "--timeout", "3s"], 0)?;
    balance(&run)?;
    ensure!(number(&run, "/asked")? == 1000, "{run}");
    let reported = number(&run, "/kernel/TcpExt.ListenOverflows")?;
    ensure!(
        reported > 0 && reported <= overflows()?,
        "{reported}: {run}"
    );
    Ok(())
}

fn long_queue() -> Result<()> {
    own_namespace()?;
    let run = summary(&["echo", "--serve-here"], 0)?;
    balance(&run)?;
    ensure!(number(&run, "/done")? == 1000, "{run}");
    ensure!(
        number(&run, "/kernel/TcpExt.ListenOverflows")? == 0,
        "{run}"
    );
    ensure!(
        number(&run, "/server/kernel/TcpExt.ListenOverflows")? == 0,
        "{run}"
    );
    Ok(())
}
