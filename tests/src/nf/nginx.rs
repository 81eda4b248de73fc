//! A master and its workers: keep-alive load, a reload, a graceful end.
use super::http::{self, Answer};
use super::measured::Everything;
use anyhow::{Result, ensure};
use hopscope_tests::{Requirement, Suite, Target, counts, scratch};
use nix::sys::signal::Signal;
use std::fs;
use std::path::Path;
use std::process::Command;

pub(super) fn register(suite: &mut Suite) {
    use Requirement::{Fsgsbase, Nginx, Root, Wrk};
    suite
        .case(
            "nf::nginx_serves_the_same_with_every_function_measured",
            &[Root, Fsgsbase, Nginx, Wrk],
            run,
        )
        .in_turn();
}

/// nginx with two workers and a page to compress, also what haproxy stands in front of.
pub(crate) struct Server {
    pub(crate) target: Target,
    pub(crate) port: u16,
}

impl Server {
    pub(crate) fn start(dir: &Path) -> Result<Server> {
        let port = http::free_port()?;
        fs::create_dir_all(dir.join("www"))?;
        fs::write(
            dir.join("www/a.txt"),
            "measured or not, the same\n".repeat(400),
        )?;
        let d = dir.display();
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .iter()
            .map(|n| format!("{n}_temp_path {d}/{n};\n"))
            .collect();
        fs::write(
            dir.join("nginx.conf"),
            format!(
                "user root; worker_processes 2; daemon off; pid {d}/pid; error_log {d}/error.log warn;\n\
                 events {{ worker_connections 256; }}\n\
                 http {{ access_log off; gzip on; gzip_min_length 10; gzip_types text/plain; \
                 keepalive_requests 1000000; {temporary}\
                 server {{ listen 127.0.0.1:{port}; root {d}/www; }} }}\n"
            ),
        )?;
        let mut command = Command::new("nginx");
        command.args(["-p", &d.to_string(), "-c", "nginx.conf"]);
        let target = Target::spawn_with_ready_file(&mut command, &dir.join("pid"))?;
        Ok(Server { target, port })
    }

    /// Gracefully, and without having had anything to complain about.
    pub(crate) fn stop(self, dir: &Path) -> Result<()> {
        self.target.signal(Signal::SIGQUIT)?;
        ensure!(
            self.target.wait()?.success(),
            "nginx did not end gracefully"
        );
        let errors = fs::read_to_string(dir.join("error.log"))?;
        let bad = errors.lines().find(|l| {
            ["[alert]", "[emerg]", "[crit]"]
                .iter()
                .any(|w| l.contains(w))
        });
        ensure!(bad.is_none(), "{errors}");
        Ok(())
    }
}

pub(crate) fn answers(port: u16) -> Result<Vec<Answer>> {
    [
        ("/a.txt", false),
        ("/a.txt", true),
        ("/missing", false),
        ("/", false),
    ]
    .into_iter()
    .map(|(path, gzip)| http::get(port, path, gzip))
    .collect()
}

/// Of a process with one thread.
pub(crate) fn children(pid: i32) -> Result<Vec<i32>> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
    let pids = text.split_whitespace().map(str::parse);
    Ok(pids.collect::<Result<_, _>>()?)
}

/// Master and two workers, gzip, 404, keep-alive load, a reload while measured, a graceful end.
fn run() -> Result<()> {
    let dir = scratch();
    let nginx = Server::start(&dir)?;
    let before = answers(nginx.port)?;
    ensure!(before[2].status.contains("404"), "{:?}", before[2].status);

    let mut pids = children(nginx.target.pid())?;
    ensure!(pids.len() == 2, "{} workers", pids.len());
    pids.push(nginx.target.pid());
    let recording = Everything::start(&pids, &dir.join("nginx.hop"))?;
    ensure!(
        answers(nginx.port)? == before,
        "different answers while measured"
    );
    http::load(nginx.port, "/a.txt", counts().pick("1s", "10s"))?;
    nginx.target.signal(Signal::SIGHUP)?;
    ensure!(
        answers(nginx.port)? == before,
        "different answers after a reload"
    );
    recording.stop()?.expect_sound(3 * 5_000, 100_000)?;

    ensure!(
        answers(nginx.port)? == before,
        "different answers afterwards"
    );
    nginx.stop(&dir)
}
