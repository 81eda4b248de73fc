//! Programs on each kind of device that `stack serve` takes.
use super::super::tools::{body, nginx};
use super::instance::{Instance, of_all_engines};
use crate::stack::cable::{KERNEL, STACK, Way, files};
use anyhow::{Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, Target};
use nix::sys::signal::Signal;
use std::process::Command;

pub(crate) fn register(suite: &mut Suite) {
    use Requirement::{Curl, Netns, Nginx};
    for way in Way::ALL.into_iter().filter(|&way| way != Way::Packet) {
        suite.case(
            format!("stack::pipeline_is_a_web_on_{}", way.name()),
            &[Netns, Nginx, Curl],
            move || web(way),
        );
    }
}

/// Workers on the stack and a client of the kernel's; a client on the stack and a server of the kernel's.
fn web(way: Way) -> Result<()> {
    let instance = Instance::on(way)?;
    let mut servers = Vec::new();
    let mut bytes = Vec::new();
    for address in [STACK, KERNEL] {
        let folder = files().join(address);
        let listen = format!("listen {address}:80;");
        let mut command = nginx(&folder, &listen, "user root; worker_processes 2;")?;
        bytes = body(&folder, 1 << 20)?;
        if address == STACK {
            let words = command.get_args().filter_map(|word| word.to_str());
            let program: Vec<&str> = std::iter::once("/usr/sbin/nginx").chain(words).collect();
            command = instance.run(&[], &program);
        }
        servers.push(Target::spawn_with_ready_file(
            &mut command,
            &folder.join("pid"),
        )?);
    }
    let got = files().join("got");
    let to = got.display().to_string();
    for round in 0..20 {
        let server = if round % 2 == 0 { STACK } else { KERNEL };
        let url = format!("http://{server}/body");
        let words = ["/usr/bin/curl", "-sS", "-m60", "-o", &to, &url];
        let mut command = match server {
            KERNEL => instance.run(&[], &words),
            _ => Command::new(words[0]),
        };
        if server == STACK {
            command.args(&words[1..]);
        }
        run(&mut command)?.expect_code(0)?;
        ensure!(
            std::fs::read(&got)? == bytes,
            "other bytes in round {round}"
        );
    }
    for server in servers {
        server.signal(Signal::SIGQUIT)?;
        let status = server.wait()?;
        ensure!(status.success(), "{status}");
    }
    let summary = instance.has_nothing_left()?;
    let sent = of_all_engines(&summary, "/counters/Tcp/OutSegs")?;
    ensure!(sent > 500, "{sent} segments in {summary}");
    Ok(())
}
