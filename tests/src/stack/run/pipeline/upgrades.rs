//! Servers that go on while their processes change: nginx and haproxy.
use super::super::running::{kernel_has_none, until, words};
use super::super::tools::{accept_in_turn, body, nginx};
use super::instance::{Instance, WATCHDOG};
use crate::stack::cable::{KERNEL, STACK, files};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, Target};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Curl, Haproxy, Netns, Nginx};
    for (name, has_mutex, reuse) in [
        ("shared", false, ""),
        ("accept_mutex", true, ""),
        ("reuseport", false, " reuseport"),
    ] {
        let case = suite.case(
            format!("stack::pipeline_upgrades_nginx_{name}"),
            &[Netns, Nginx, Curl],
            move || web_server(has_mutex, reuse),
        );
        case.in_turn().soak = has_mutex;
    }
    suite
        .case(
            "stack::pipeline_hands_over_haproxy",
            &[Netns, Nginx, Haproxy],
            proxy,
        )
        .in_turn();
}

/// A request on a connection of its own.
pub(super) fn request(port: u16) -> Result<()> {
    let mut stream = TcpStream::connect((STACK, port))?;
    stream.set_read_timeout(Some(WATCHDOG))?;
    stream.write_all(b"GET /small HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")?;
    let mut back = String::new();
    stream.read_to_string(&mut back)?;
    let is_whole = back.starts_with("HTTP/1.1 200 ") && back.ends_with(&"x".repeat(600));
    ensure!(is_whole, "{} bytes: {back:.80}", back.len());
    Ok(())
}

/// Requests one after the other while `meanwhile` runs: not one of them fails.
pub(super) fn without_a_failure(port: u16, meanwhile: impl FnOnce() -> Result<()>) -> Result<()> {
    let (stop, served) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let client = || -> Result<()> {
            while !stop.load(Ordering::Relaxed) {
                request(port)?;
                served.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        };
        let clients = [scope.spawn(client), scope.spawn(client)];
        let done = meanwhile().and_then(|()| {
            until("requests", || {
                let are_over = clients.iter().any(|client| client.is_finished());
                Ok(are_over || served.load(Ordering::Relaxed) > 20)
            })
        });
        stop.store(true, Ordering::Relaxed);
        for client in clients {
            client.join().ok().context("no panic")??;
        }
        done
    })
}

fn number_in(file: &Path) -> Result<i32> {
    Ok(std::fs::read_to_string(file)?.trim().parse()?)
}

/// Children of a process.
pub(super) fn children(pid: i32) -> Result<Vec<i32>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
    Ok(text
        .split_whitespace()
        .filter_map(|n| n.parse().ok())
        .collect())
}

pub(super) fn signal(pid: i32, signal: Signal) -> Result<()> {
    kill(Pid::from_raw(pid), signal).with_context(|| format!("{signal} to {pid}"))
}

/// Whatever is left of it is killed at the end of the case.
struct Daemon<'a>(&'a Path);

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        for name in ["pid", "pid.oldbin"] {
            let Ok(pid) = number_in(&self.0.join(name)) else {
                continue;
            };
            for pid in children(pid).unwrap_or_default().into_iter().chain([pid]) {
                let _ = signal(pid, Signal::SIGKILL);
            }
        }
    }
}

/// Reloads, a killed worker, and another program in its place: whoever connects is served.
fn web_server(has_mutex: bool, reuse: &str) -> Result<()> {
    let instance = Instance::start(&[])?;
    let folder = files().join("nginx");
    let bytes = body(&folder, 3_000_000)?;
    std::fs::write(folder.join("small"), [b'x'; 600])?;
    let listen = format!("listen {STACK}:80{reuse};");
    let plain = nginx(&folder, &listen, "user root; worker_processes 2;")?;
    let mut program: Vec<String> = plain
        .get_args()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    if has_mutex {
        accept_in_turn(&folder)?;
    }
    // It executes itself by this name, and only as a daemon.
    program.insert(0, "/usr/sbin/nginx".into());
    let config = folder.join("nginx.conf");
    let text = std::fs::read_to_string(&config)?;
    std::fs::write(&config, text.replace("daemon off;", ""))?;
    run(&mut instance.run(&[], &words(&program)))?.expect_code(0)?;
    kernel_has_none(80)?;
    let _daemon = Daemon(&folder);
    let master = number_in(&folder.join("pid"))?;
    until("two workers", || Ok(children(master)?.len() == 2))?;
    without_a_failure(80, || {
        for _ in 0..3 {
            let before = children(master)?;
            signal(master, Signal::SIGHUP)?;
            until("new workers", || {
                let now = children(master)?;
                Ok(now.len() == 2 && now.iter().all(|pid| !before.contains(pid)))
            })?;
        }
        Ok(())
    })?;
    // Its connections are reset, and nobody else's.
    let victim = children(master)?[0];
    signal(victim, Signal::SIGKILL)?;
    until("another worker", || {
        let now = children(master)?;
        Ok(now.len() == 2 && !now.contains(&victim))
    })?;
    without_a_failure(80, || {
        signal(master, Signal::SIGUSR2)?;
        until("a new program", || {
            let pid = number_in(&folder.join("pid"));
            Ok(pid.is_ok_and(|pid| pid != master && children(pid).is_ok_and(|all| all.len() == 2)))
        })?;
        signal(master, Signal::SIGQUIT)
    })?;
    until("the old one ends", || Ok(children(master).is_err()))?;
    let got = files().join("got");
    let url = format!("http://{STACK}/body");
    run(Command::new("curl").args(["-sS", "-o"]).arg(&got).arg(&url))?.expect_code(0)?;
    ensure!(std::fs::read(&got)? == bytes, "the body differs");
    signal(number_in(&folder.join("pid"))?, Signal::SIGQUIT)?;
    instance.ends(100).map(drop)
}

/// The next one, of another `stack run`, gets the listeners of the one before by a socket, and connects to a server at the kernel's end.
fn proxy() -> Result<()> {
    let instance = Instance::start(&[])?;
    let folder = files().join("nginx");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("small"), [b'x'; 600])?;
    let mut back = nginx(
        &folder,
        &format!("listen {KERNEL}:80;"),
        "master_process off;",
    )?;
    let _back = Target::spawn_with_ready_file(&mut back, &folder.join("pid"))?;
    let at = std::env::temp_dir().join(format!("hopscope-{}.haproxy", std::process::id()));
    let config = files().join("haproxy.cfg");
    let text = format!(
        "global\n  nbthread 2\n  stats socket {} mode 600 level admin expose-fd listeners\n\
         defaults\n  mode http\n  timeout connect 20s\n  timeout client 20s\n  timeout server 20s\n\
         frontend front\n  bind {STACK}:8080\n  default_backend back\n\
         backend back\n  server one {KERNEL}:80\n",
        at.display()
    );
    std::fs::write(&config, text)?;
    let start = |more: &[&str]| -> Result<Target> {
        let config = config.to_str().context("path")?;
        let program = [&["/usr/sbin/haproxy", "-db", "-f", config][..], more].concat();
        let mut command = instance.run(&[], &program);
        command.stderr(Stdio::null());
        Target::spawn_now(&mut command)
    };
    let first = start(&[])?;
    until("it serves", || Ok(request(8080).is_ok()))?;
    kernel_has_none(8080)?;
    let mut second = None;
    without_a_failure(8080, || {
        let (old, path) = (first.pid().to_string(), at.display().to_string());
        second = Some(start(&["-x", &path, "-sf", &old])?);
        let status = first.wait()?;
        ensure!(status.success(), "{status}");
        Ok(())
    })?;
    let second = second.context("started")?;
    second.signal(Signal::SIGUSR1)?;
    second.wait()?;
    let _ = std::fs::remove_file(&at);
    instance.ends(100).map(drop)
}
