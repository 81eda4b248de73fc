//! Servers that have another library preloaded: an allocator in the place of the C library's.
use super::super::running::kernel_has_none;
use super::side::{Mode, Side};
use super::{memcached, web};
use crate::stack::cable::{STACK, files};
use anyhow::{Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::requirement::JEMALLOC;
use hopscope_tests::{Requirement, Suite, Target, counts};
use std::process::{Command, Stdio};

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Curl, Jemalloc, Memcached, Netns, Nginx, Openssl, Python3, Redis};
    for mode in Mode::BOTH {
        let mut case =
            |program: &str, needs: &[Requirement], run: fn(Mode, &str, &str) -> Result<()>| {
                let name = format!("{}_serves_beside_jemalloc_with_{program}", mode.prefix());
                suite
                    .case(name, needs, move || run(mode, JEMALLOC, "libjemalloc.so.2"))
                    .in_turn();
            };
        case(
            "memcached",
            &[Netns, Jemalloc, Memcached, Python3],
            memcached::serves,
        );
        case(
            "nginx",
            &[Netns, Jemalloc, Nginx, Curl, Openssl],
            web::serves,
        );
        case("redis", &[Netns, Jemalloc, Redis], redis);
    }
}

fn redis(mode: Mode, preloaded: &str, library: &str) -> Result<()> {
    let side = Side::new(mode)?;
    let pid = files().join("redis-pid");
    let file = pid.display().to_string();
    let program = [
        "/usr/bin/redis-server",
        "--bind",
        STACK,
        "--save",
        "",
        "--protected-mode",
        "no",
        "--pidfile",
        &file,
    ];
    let mut command = side.command(&program);
    command.stdout(Stdio::null()).env("LD_PRELOAD", preloaded);
    let server = side.spawns(&mut command, |command| {
        Target::spawn_with_ready_file(command, &pid)
    })?;
    kernel_has_none(6379)?;
    server.has_loaded(library)?;
    let requests = counts().pick("3000", "100000");
    let bench = [
        "-h",
        STACK,
        "-c",
        "20",
        "-n",
        requests,
        "-d",
        "1000",
        "-t",
        "set,get,lpush,lrange_100",
        "--csv",
    ];
    run(Command::new("redis-benchmark").args(bench))?.expect_code(0)?;
    let value = "v".repeat(100_000);
    let cli = |words: &[&str]| run(Command::new("redis-cli").args(["-h", STACK]).args(words));
    ensure!(cli(&["set", "long", &value])?.stdout.trim() == "OK");
    ensure!(
        cli(&["get", "long"])?.stdout.trim() == value,
        "another value"
    );
    // It answers nothing: the connection ends with it.
    let _ = cli(&["shutdown", "nosave"])?;
    side.ended(server, None)?;
    side.ends(1_000)
}
