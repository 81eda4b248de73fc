//! Cables between the kernel's TCP and the stack's, and servers and clients at their ends.
use super::Bench;
use crate::Settings;
use crate::error::{Error, Result};
use crate::load::network::{Namespace, Server, processors};
use crate::program::{run, run_as};
use crate::said;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// The client's kernel is at .1 of each; the server's kernel at .2, the stack at .3.
pub(crate) const KERNEL: &str = "10.0.0.2";
pub(crate) const STACK: &str = "10.0.1.3";

/// Two cables between two namespaces: one to the kernel's server, one to the stack's.
pub(crate) struct Cables {
    pub(crate) client: Namespace,
    pub(crate) server: Namespace,
}

impl Cables {
    pub(crate) fn lay() -> Result<Cables> {
        let (client, server) = (Namespace::new()?, Namespace::new()?);
        client.many_ports()?;
        client.cable("c0", &server, "s0")?;
        client.address("c0", "10.0.0.1")?;
        server.address("s0", KERNEL)?;
        client.cable("c1", &server, "s1")?;
        client.address("c1", "10.0.1.1")?;
        Ok(Cables { client, server })
    }

    /// A TAP device beside the client, whose other end is the stack's to be; the kernel has 10.0.2.1.
    pub(crate) fn tap(&self) -> Result<&Namespace> {
        for words in [
            "tuntap add t0 mode tap vnet_hdr",
            "link set t0 up",
            "address add 10.0.2.1/24 dev t0",
        ] {
            self.client.ip(words)?;
        }
        Ok(&self.client)
    }
}

/// Two ends and the bridge between them, which cuts nothing and merges nothing.
pub(crate) struct Bridged {
    pub(crate) near: Namespace,
    middle: Namespace,
    pub(crate) far: Namespace,
}

impl Bridged {
    pub(crate) fn lay() -> Result<Bridged> {
        let (near, middle, far) = (Namespace::new()?, Namespace::new()?, Namespace::new()?);
        near.cable("a0", &middle, "a1")?;
        middle.cable("b1", &far, "b0")?;
        near.address("a0", "10.0.0.1")?;
        far.address("b0", KERNEL)?;
        for (namespace, device) in [
            (&near, "a0"),
            (&middle, "a1"),
            (&middle, "b1"),
            (&far, "b0"),
        ] {
            let words = [
                "-K", device, "tx", "off", "tso", "off", "gso", "off", "gro", "off",
            ];
            run(namespace.command("ethtool").args(words))?;
        }
        Ok(Bridged { near, middle, far })
    }

    /// Runs as long as it is held.
    pub(crate) fn bridge(&self, settings: &Settings, words: &[&str]) -> Result<Running> {
        let ready = settings.build_dir.join("stack/bridge-ready");
        let _ = std::fs::remove_file(&ready);
        let mut command = self.middle.urgent(&settings.hopscope);
        command
            .args(["load", "bridge", "a1", "b1", "--delay", "500us", "--json"])
            .args(words)
            .arg("--ready-file")
            .arg(&ready);
        Running::start("hopscope load bridge", command, &ready)
    }
}

/// A program that is killed at its end.
pub(crate) struct Running(std::process::Child);

impl Running {
    /// Once `ready` is there, which the program makes, and holds something.
    pub(crate) fn start(name: &str, mut command: Command, ready: &Path) -> Result<Running> {
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.spawn().map_err(Error::start(name))?;
        let mut running = Running(child);
        for _ in 0..1000 {
            if ready.metadata().is_ok_and(|file| file.len() > 0) {
                return Ok(running);
            }
            if let Ok(Some(status)) = running.0.try_wait() {
                return Err(Error::failed(name, status, "see above"));
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        Err(Error::NotReady {
            program: name.into(),
            seconds: 10,
            said: String::new(),
        })
    }
}

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// In order, with its children; what is left after five seconds is killed.
    pub(crate) fn end(mut self) {
        let _ = kill(Pid::from_raw(self.0.id().cast_signed()), Signal::SIGTERM);
        for _ in 0..500 {
            if !matches!(self.0.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Until a client that does not end is killed: whatever it waits for, the bench goes on without that figure.
const WATCHDOG_S: &str = "60";

/// On the last processor, which no client uses.
pub(crate) fn server_in(namespace: &Namespace, program: &Path) -> Command {
    let mut command = namespace.urgent("taskset");
    command.args(["-c", &processors().1]).arg(program);
    command
}

/// On the first one, for a bounded time. Its threads take turns (SCHED_RR): with SCHED_FIFO one that has always something to
/// do, as wrk's with thousands of connections, keeps the one that is to end it waiting for ever. What kills it comes before
/// it.
pub(crate) fn client_in(namespace: &Namespace, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = namespace.urgent("timeout");
    command.args(["--signal=KILL", WATCHDOG_S]);
    command.args(["chrt", "--rr", "9", "taskset", "-c", &processors().0]);
    command.arg(program);
    command
}

/// The server in C.
pub(super) fn kernel_http(
    bench: &Bench<'_, '_>,
    namespace: &Namespace,
    body_bytes: u32,
    spins: bool,
) -> Result<Server> {
    let mut command = server_in(namespace, &bench.http);
    let how = if spins { "spin" } else { "sleep" };
    command.args(["80", &body_bytes.to_string(), how]);
    Server::start("the C server", command)
}

/// The stack with a server in it, at `interface`.
pub(crate) fn stack_serves(
    settings: &Settings,
    namespace: &Namespace,
    interface: &str,
    words: &[&str],
) -> Result<Server> {
    let mut command = server_in(namespace, &settings.hopscope);
    command.args([
        "stack",
        "serve",
        "--json",
        "--no-control",
        "--if",
        interface,
    ]);
    Server::start("hopscope stack serve", {
        command.args(words);
        command
    })
}

/// The last line of what a program prints.
pub(super) fn last_line_of(name: &str, command: &mut Command) -> Result<Value> {
    let printed = run_as(name, command)?;
    said::last_line(name, &printed)
}
