//! The servers that are compared, each a process, all with the same accept queue.
use crate::error::{Error, Result};
use crate::load::network::{Namespace, Server};
use crate::program::{last_words, run_as};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Of every server. The kernel cuts it to net.core.somaxconn, which is 4096 since Linux 5.4.
pub(super) const BACKLOG: u32 = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ServerKind {
    /// One thread, epoll: what everything else is set against.
    User,
    UserMt,
    Uring,
    /// Bytes turn round in the kernel; local clients get them straight into their sockets.
    Kernel,
    /// The same, through the server's own way out.
    KernelEgress,
    /// `User` unchanged, its connections accelerated.
    Splice,
    /// The same without the limit of what may be unread.
    SpliceUnguarded,
    /// In a kernel module, which only a guest's kernel is given.
    Module,
}

impl ServerKind {
    pub(super) const ALL: [ServerKind; 7] = [
        ServerKind::User,
        ServerKind::UserMt,
        ServerKind::Uring,
        ServerKind::Kernel,
        ServerKind::KernelEgress,
        ServerKind::Splice,
        ServerKind::SpliceUnguarded,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            ServerKind::User => "user",
            ServerKind::UserMt => "user_mt",
            ServerKind::Uring => "uring",
            ServerKind::Kernel => "kernel",
            ServerKind::KernelEgress => "kernel_egress",
            ServerKind::Splice => "splice",
            ServerKind::SpliceUnguarded => "splice_unguarded",
            ServerKind::Module => "module",
        }
    }

    /// Of `hopscope splice echo`.
    pub(super) fn words(self) -> &'static [&'static str] {
        match self {
            ServerKind::User | ServerKind::Splice | ServerKind::SpliceUnguarded => {
                &["--mode", "user"]
            }
            ServerKind::UserMt => &["--mode", "user-mt", "--threads", "2"],
            ServerKind::Uring => &["--mode", "uring"],
            ServerKind::Kernel => &["--mode", "kernel", "--local-clients"],
            ServerKind::KernelEgress => &["--mode", "kernel"],
            ServerKind::Module => &[],
        }
    }

    /// Of `hopscope splice attach`, where it is behind one.
    pub(super) fn accelerator(self) -> Option<&'static [&'static str]> {
        match self {
            ServerKind::Splice => Some(&[]),
            ServerKind::SpliceUnguarded => Some(&["--no-guard"]),
            _ => None,
        }
    }
}

/// A server at work, with its accelerator if it has one.
pub(super) struct Running {
    pub(super) kind: ServerKind,
    pub(super) port: String,
    server: Option<Server>,
    _accelerator: Option<Accelerator>,
}

impl Running {
    /// `one_processor`: the server is kept on the same one as its clients.
    pub(super) fn start(
        hopscope: &Path,
        files: &Path,
        at: &Namespace,
        host: &str,
        kind: ServerKind,
        backlog: u32,
        one_processor: bool,
    ) -> Result<Running> {
        let mut command = if one_processor {
            at.in_its_network_on_one_processor(hopscope)
        } else {
            at.in_its_network(hopscope)
        };
        command.args(["splice", "echo"]).args(kind.words());
        command.args(["--listen", &format!("{host}:0")]);
        command.args(["--backlog", &backlog.to_string()]);
        command.args(["--until-stdin-ends", "--json"]);
        let server = Server::start("hopscope splice echo", command)?;
        let port = server.port.clone();
        let accelerator = match kind.accelerator() {
            None => None,
            Some(more) => Some({
                let port = std::slice::from_ref(&port);
                Accelerator::start(hopscope, files, port, more)?
            }),
        };
        Ok(Running {
            kind,
            port,
            server: Some(server),
            _accelerator: accelerator,
        })
    }

    /// Ends it; its summary.
    pub(super) fn finish(mut self) -> Result<serde_json::Value> {
        let line = match self.server.take() {
            Some(server) => server.finish()?,
            None => String::new(),
        };
        Ok(serde_json::from_str(&line).unwrap_or_default())
    }
}

/// `hopscope splice attach`, of every process of the machine but for a few ports only.
pub(super) struct Accelerator {
    child: Child,
    ready: PathBuf,
    hopscope: PathBuf,
}

impl Accelerator {
    pub(super) fn start(
        hopscope: &Path,
        files: &Path,
        ports: &[String],
        more: &[&str],
    ) -> Result<Accelerator> {
        let port = ports.join("-");
        std::fs::create_dir_all(files).map_err(Error::file("create", files))?;
        let ready = files.join(format!("attached-{port}"));
        let _ = std::fs::remove_file(&ready);
        let stderr = files.join(format!("attach-{port}.stderr"));
        let said = std::fs::File::create(&stderr).map_err(Error::file("create", &stderr))?;
        let mut command = Command::new(hopscope);
        command.args(["splice", "attach", "--yes", "--blocking", "--cgroup"]);
        command.arg(cgroup_root()?);
        for port in ports {
            command.args(["--port", port]);
        }
        command.arg("--ready-file").arg(&ready).args(more);
        let command = command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.stderr(said).spawn();
        let child = child.map_err(Error::start("hopscope splice attach"))?;
        let mut accelerator = Accelerator {
            child,
            ready,
            hopscope: hopscope.to_owned(),
        };
        while !accelerator.ready.exists() {
            if let Ok(Some(status)) = accelerator.child.try_wait() {
                let said = std::fs::read_to_string(&stderr).unwrap_or_default();
                return Err(Error::failed(
                    "hopscope splice attach",
                    status,
                    last_words(&said),
                ));
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        Ok(accelerator)
    }
}

impl Accelerator {
    /// What it has counted so far.
    pub(super) fn stat(&self) -> Result<serde_json::Value> {
        let mut command = Command::new(&self.hopscope);
        let pid = self.child.id().to_string();
        command.args(["splice", "stat", "--json", "--of", &pid]);
        let said = run_as("hopscope splice stat", &mut command)?;
        Ok(serde_json::from_str(said.trim()).unwrap_or_default())
    }
}

/// What was counted between two answers of [`Accelerator::stat`].
///
/// # Errors
/// One of them has no such counter.
pub(super) fn more(
    before: &serde_json::Value,
    after: &serde_json::Value,
    name: &str,
) -> Result<u64> {
    let of = |stat: &serde_json::Value| {
        stat[name]
            .as_u64()
            .ok_or_else(|| Error::no_field("hopscope splice stat", name, stat))
    };
    Ok(of(after)?.saturating_sub(of(before)?))
}

impl Drop for Accelerator {
    /// As Ctrl-C: what it has attached goes with it.
    fn drop(&mut self) {
        let pid = nix::unistd::Pid::from_raw(self.child.id() as i32);
        let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT);
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.ready);
    }
}

fn cgroup_root() -> Result<PathBuf> {
    let mounts = Path::new("/proc/self/mounts");
    let text = std::fs::read_to_string(mounts).map_err(Error::file("read", mounts))?;
    let found = text.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (path, kind) = (words.next()?, words.next()?);
        (kind == "cgroup2").then(|| PathBuf::from(path))
    });
    found.ok_or_else(|| {
        Error::failed(
            "looking for a cgroup2 file system",
            "none is mounted",
            "mount -t cgroup2 none /sys/fs/cgroup",
        )
    })
}
