//! haproxy with four threads between both stacks: listeners and servers of either.
use super::super::running::kernel_has_none;
use super::super::tools::{body, nginx};
use super::side::{Mode, Side};
use super::web::started;
use crate::stack::cable::{KERNEL, STACK, files};
use anyhow::{Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, Target, counts};
use nix::sys::signal::Signal;
use std::process::{Command, Stdio};

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Curl, Haproxy, Netns, Nginx};
    for mode in Mode::BOTH {
        let name = format!("{}_proxies_with_haproxy", mode.prefix());
        let needs = &[Netns, Nginx, Haproxy, Curl];
        suite.case(name, needs, move || proxies(mode)).in_turn();
    }
}

/// The stack's server is the proxy itself where it is the only program: it has one more connection to itself then.
fn config(mode: Mode) -> String {
    let stacks = match mode {
        Mode::Inline => format!("{STACK}:8080"),
        Mode::Pipeline => format!("{STACK}:80"),
    };
    format!(
        "global\n  nbthread 4\n\
         defaults\n  mode http\n  timeout connect 20s\n  timeout client 20s\n  timeout server 20s\n\
         frontend a\n  bind {STACK}:8080\n  default_backend kernel\n\
         frontend b\n  bind {STACK}:8081\n  default_backend stack\n\
         frontend c\n  bind {KERNEL}:8082\n  default_backend stack\n\
         backend kernel\n  server one {KERNEL}:80\n\
         backend stack\n  server one {stacks}\n"
    )
}

const FETCHED: usize = 40;

pub(super) fn fetch(from: &str, bytes: &[u8]) -> Result<()> {
    let to = files().join("got");
    let url = format!("http://{from}/body?[1-{FETCHED}]");
    run(Command::new("curl")
        .args([
            "-sS",
            "--fail",
            "--max-time",
            "60",
            "--retry",
            "20",
            "--retry-connrefused",
        ])
        .args(["-Z", "--parallel-max", "10", "--create-dirs", "-o"])
        .arg(to.join("#1"))
        .arg(url))?
    .expect_code(0)?;
    for n in 1..=FETCHED {
        let got = std::fs::read(to.join(n.to_string()))?;
        ensure!(got == bytes, "{from}: {n} differs: {} bytes", got.len());
    }
    Ok(())
}

fn proxies(mode: Mode) -> Result<()> {
    let side = Side::new(mode)?;
    let folder = files().join("nginx");
    let bytes = body(&folder, counts().pick(100_000, 10_000_000))?;
    let listen = format!("listen {KERNEL}:80;");
    let mut kernels = nginx(&folder, &listen, "master_process off;")?;
    let _kernels = Target::spawn_with_ready_file(&mut kernels, &folder.join("pid"))?;
    let stacks = match mode {
        Mode::Inline => None,
        Mode::Pipeline => {
            let folder = files().join("other");
            body(&folder, bytes.len())?;
            let whole = nginx(
                &folder,
                &format!("listen {STACK}:80;"),
                "user root; worker_processes 2;",
            )?;
            Some(started(&side, &whole, &folder)?)
        }
    };
    let path = files().join("haproxy.cfg");
    std::fs::write(&path, config(mode))?;
    let path = path.display().to_string();
    let mut command = side.command(&["/usr/sbin/haproxy", "-db", "-f", &path]);
    command.stdout(Stdio::null());
    let proxy = side.spawns(&mut command, Target::spawn_now)?;
    for from in [
        format!("{STACK}:8080"),
        format!("{STACK}:8081"),
        format!("{KERNEL}:8082"),
    ] {
        fetch(&from, &bytes)?;
    }
    kernel_has_none(8080)?;
    kernel_has_none(8081)?;
    side.ended(proxy, Some(Signal::SIGUSR1))?;
    if let Some(server) = stacks {
        side.ended(server, Some(Signal::SIGQUIT))?;
    }
    side.ends(300)
}
