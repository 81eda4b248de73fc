//! nginx's configuration is loaded anew under a steady load: each time other workers, and not one request fails.
use super::super::running::{kernel_has_none, until};
use super::super::tools::{accept_in_turn, nginx};
use super::instance::Instance;
use super::load::under_load;
use super::upgrades::children;
use crate::stack::cable::{STACK, files};
use anyhow::{Result, ensure};
use hopscope_tests::{Requirement, Suite, Target, counts};
use nix::sys::signal::Signal;

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Netns, Nginx};
    for (name, workers, has_mutex, reuse) in [
        ("one_worker", 1, false, ""),
        ("two_workers", 2, false, ""),
        ("accept_mutex", 2, true, ""),
        ("reuseport", 2, false, " reuseport"),
    ] {
        let name = format!("stack::pipeline_reloads_nginx_{name}");
        let case = suite.case(name, &[Netns, Nginx], move || {
            reloads(workers, has_mutex, reuse)
        });
        case.in_turn().soak = workers == 2 && !has_mutex;
    }
}

/// Between two of them.
const ANSWERED: u64 = 200;

fn reloads(workers: usize, has_mutex: bool, reuse: &str) -> Result<()> {
    let instance = Instance::start(&[])?;
    let folder = files().join("nginx");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("small"), [b'x'; 600])?;
    let listen = format!("listen {STACK}:80{reuse};");
    let more = format!("user root; worker_processes {workers};");
    let plain = nginx(&folder, &listen, &more)?;
    if has_mutex {
        accept_in_turn(&folder)?;
    }
    let words = plain.get_args().filter_map(|word| word.to_str());
    let program: Vec<&str> = std::iter::once("/usr/sbin/nginx").chain(words).collect();
    let mut command = instance.run(&[], &program);
    let server = Target::spawn_with_ready_file(&mut command, &folder.join("pid"))?;
    kernel_has_none(80)?;
    let are_new = |before: &[i32]| -> Result<bool> {
        let now = children(server.pid())?;
        Ok(now.len() == workers && now.iter().all(|pid| !before.contains(pid)))
    };
    until("workers", || are_new(&[]))?;
    under_load(80, |load| {
        for _ in 0..counts().pick(6, 300) {
            load.goes_on(ANSWERED)?;
            let before = children(server.pid())?;
            server.signal(Signal::SIGHUP)?;
            until("new workers alone", || are_new(&before))?;
        }
        load.goes_on(ANSWERED)
    })?;
    server.signal(Signal::SIGQUIT)?;
    let status = server.wait()?;
    ensure!(status.success(), "{status}");
    instance.ends(1_000).map(drop)
}
