//! haproxy's master executes itself for each configuration, and its next worker gets the listeners of the one before.
use super::super::running::{kernel_has_none, until};
use super::super::tools::nginx;
use super::instance::Instance;
use super::upgrades::{children, signal, without_a_failure};
use crate::stack::cable::{KERNEL, STACK, files};
use anyhow::{Result, ensure};
use hopscope_tests::{Requirement, Suite, Target, counts};
use nix::sys::signal::Signal;
use std::fs::File;
use std::process::Stdio;

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Haproxy, Netns, Nginx};
    suite
        .case(
            "stack::pipeline_reloads_haproxy",
            &[Netns, Nginx, Haproxy],
            reloads,
        )
        .in_turn();
}

const PORT: u16 = 8080;

/// Threads in each worker; a server of either stack behind them, in turn.
fn config() -> String {
    format!(
        "global\n  nbthread 2\n\
         defaults\n  mode http\n  timeout connect 20s\n  timeout client 20s\n  timeout server 20s\n\
         frontend front\n  bind {STACK}:{PORT}\n  default_backend back\n\
         backend back\n  balance roundrobin\n  server kernels {KERNEL}:80\n  server stacks {STACK}:80\n"
    )
}

fn server(instance: Option<&Instance>, address: &str, name: &str) -> Result<Target> {
    let folder = files().join(name);
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("small"), [b'x'; 600])?;
    let listen = format!("listen {address}:80;");
    let mut command = nginx(&folder, &listen, "user root; master_process off;")?;
    if let Some(instance) = instance {
        let words = command.get_args().filter_map(|word| word.to_str());
        let program: Vec<&str> = std::iter::once("/usr/sbin/nginx").chain(words).collect();
        command = instance.run(&[], &program);
    }
    Target::spawn_with_ready_file(&mut command, &folder.join("pid"))
}

/// haproxy loses signals that come before its master is in its loop, where it waits: epoll_wait(2) is number 232 on x86-64.
fn waits(master: i32) -> Result<bool> {
    Ok(std::fs::read_to_string(format!("/proc/{master}/syscall"))?.starts_with("232 "))
}

fn reloads() -> Result<()> {
    let instance = Instance::start(&[])?;
    let _kernels = server(None, KERNEL, "kernels")?;
    let stacks = server(Some(&instance), STACK, "stacks")?;
    let path = files().join("haproxy.cfg");
    std::fs::write(&path, config())?;
    let path = path.display().to_string();
    let mut command = instance.run(&[], &["/usr/sbin/haproxy", "-W", "-f", &path]);
    let said = files().join("haproxy-said");
    command.stdout(Stdio::null()).stderr(File::create(&said)?);
    let master = Target::spawn_now(&mut command)?;
    let said =
        |word: &str| -> Result<usize> { Ok(std::fs::read_to_string(&said)?.matches(word).count()) };
    until("it listens", || Ok(said("Loading success")? == 1))?;
    kernel_has_none(PORT)?;
    without_a_failure(PORT, || {
        for n in 1..=counts().pick(3, 60) {
            until("its master waits", || waits(master.pid()))?;
            let before = children(master.pid())?;
            signal(master.pid(), Signal::SIGUSR2)?;
            until("another worker alone", || {
                Ok(said("Loading success")? == n + 1 && said("Former worker")? == n)
            })?;
            let now = children(master.pid())?;
            ensure!(now.len() == 1 && now != before, "{before:?}, {now:?}");
        }
        Ok(())
    })?;
    master.signal(Signal::SIGUSR1)?;
    let status = master.wait()?;
    ensure!(status.success(), "{status}");
    stacks.signal(Signal::SIGQUIT)?;
    ensure!(stacks.wait()?.success(), "the server failed");
    instance.ends(100).map(drop)
}
