//! Namespaces of a test's own: they go with its process.
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use nix::sched::{CloneFlags, unshare};
use std::process::{Child, Command, Stdio};

pub(crate) fn ip(arguments: &str) -> Result<()> {
    let out = run(Command::new("ip").args(arguments.split(' ')))?;
    ensure!(out.code == Some(0), "ip {arguments}: {}", out.stderr);
    Ok(())
}

/// This process in one of its own, with addresses for clients to come from.
pub(crate) fn own() -> Result<()> {
    unshare(CloneFlags::CLONE_NEWNET).context("a network namespace")?;
    ip("link set lo up")?;
    for last in 2..=9 {
        ip(&format!("address add fd00:7::{last}/128 dev lo nodad"))?;
    }
    Ok(())
}

/// Another one, at the other end of a cable: 10.7.0.1 and fd00:8::1 there, .2 to .9 here.
pub(crate) struct Other {
    holder: Child,
}

impl Other {
    pub(crate) fn beside_this() -> Result<Other> {
        let holder = Command::new("unshare")
            .args(["--net", "sleep", "infinity"])
            .stdin(Stdio::null())
            .spawn()
            .context("unshare")?;
        let other = Other { holder };
        other.await_namespace()?;
        let pid = other.holder.id();
        ip(&format!("link add c0 type veth peer name s0 netns {pid}"))?;
        for last in 2..=9 {
            ip(&format!("address add 10.7.0.{last}/24 dev c0"))?;
            ip(&format!("address add fd00:8::{last}/64 dev c0 nodad"))?;
        }
        ip("link set c0 up")?;
        for words in [
            "link set lo up",
            "address add 10.7.0.1/24 dev s0",
            "address add fd00:8::1/64 dev s0 nodad",
            "link set s0 up",
        ] {
            let mut command = other.command("ip");
            let out = run(command.args(words.split(' ')))?;
            ensure!(out.code == Some(0), "ip {words}: {}", out.stderr);
        }
        Ok(other)
    }

    /// Its namespace is another than ours once `unshare` has done its work.
    fn await_namespace(&self) -> Result<()> {
        let of = |who: &str| std::fs::read_link(format!("/proc/{who}/ns/net"));
        let ours = of("self")?;
        while of(&self.holder.id().to_string())? == ours {
            std::thread::yield_now();
        }
        Ok(())
    }

    /// A command that will run `program` there.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{}/ns/net", self.holder.id()));
        command.arg("--").arg(program);
        command
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}
