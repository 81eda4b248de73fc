//! A proxy with two threads in front of a web server.
use super::http;
use super::measured::Everything;
use super::nginx::{Server, answers, children};
use anyhow::{Result, ensure};
use hopscope_tests::{Requirement, Suite, Target, counts, scratch};
use nix::sys::signal::Signal;
use std::fs;
use std::process::{Command, Stdio};

pub(super) fn register(suite: &mut Suite) {
    use Requirement::{Fsgsbase, Haproxy, Nginx, Root, Wrk};
    suite
        .case(
            "nf::haproxy_passes_on_the_same_with_every_function_measured",
            &[Root, Fsgsbase, Haproxy, Nginx, Wrk],
            run,
        )
        .in_turn();
}

/// Master and worker: answers through the proxy, keep-alive load, and an end while measured.
fn run() -> Result<()> {
    let dir = scratch();
    let nginx = Server::start(&dir)?;
    let port = http::free_port()?;
    let config = dir.join("haproxy.cfg");
    fs::write(
        &config,
        format!(
            "global\n  nbthread 2\n\
             defaults\n  mode http\n  timeout connect 60s\n  timeout client 60s\n  timeout server 60s\n\
             frontend in\n  bind 127.0.0.1:{port}\n  acl denied path_beg /denied\n\
             \x20 http-request deny if denied\n  http-response set-header X-Passed yes\n\
             \x20 default_backend web\n\
             backend web\n  balance roundrobin\n  server a 127.0.0.1:{b} check\n  server b 127.0.0.1:{b}\n",
            b = nginx.port
        ),
    )?;
    let mut command = Command::new("haproxy");
    let pid_file = dir.join("haproxy.pid");
    command
        .args(["-W", "-f"])
        .arg(&config)
        .arg("-p")
        .arg(&pid_file)
        .stdout(Stdio::null());
    let haproxy = Target::spawn_with_ready_file(&mut command, &pid_file)?;
    let all = |port| -> Result<_> {
        let mut all = answers(port)?;
        all.push(http::get(port, "/denied", false)?);
        Ok(all)
    };
    let before = all(port)?;
    ensure!(before[4].status.contains("403"), "{:?}", before[4]);
    ensure!(
        before[..4] == answers(nginx.port)?,
        "haproxy changed an answer"
    );

    let mut pids = children(haproxy.pid())?;
    ensure!(pids.len() == 1, "{} workers", pids.len());
    pids.push(haproxy.pid());
    let recording = Everything::start(&pids, &dir.join("first.hop"))?;
    ensure!(all(port)? == before, "different answers while measured");
    recording.stop()?.expect_sound(2 * 5_000, 1_000)?;
    ensure!(all(port)? == before, "different answers after a recording");

    let recording = Everything::start(&pids, &dir.join("second.hop"))?;
    http::load(port, "/a.txt", counts().pick("1s", "10s"))?;
    ensure!(all(port)? == before, "different answers under load");
    haproxy.signal(Signal::SIGUSR1)?;
    ensure!(haproxy.wait()?.success(), "haproxy did not end gracefully");
    recording.finished()?.expect_sound(2 * 5_000, 100_000)?;
    nginx.stop(&dir)
}
