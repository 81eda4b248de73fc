//! Network namespaces that last as long as a process that holds them: whatever ends this bench, they
//! and their cables are gone.
use crate::error::{Error, Result};
use crate::program::run;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Prepared for traffic: /sys shows the devices of in here, and nothing but the bench's own goes over
/// its cables.
const PREPARE: &str = "mount -t sysfs none /sys && for file in /proc/sys/net/ipv6/conf/*/disable_ipv6; do \
     if [ -e \"$file\" ]; then echo 1 > \"$file\"; fi; done; ip link set lo up";

#[derive(Debug)]
pub(crate) struct Namespace {
    holder: Child,
    /// The holder ends with it.
    _open: ChildStdin,
}

impl Namespace {
    pub(crate) fn new() -> Result<Namespace> {
        let mut holder = Command::new("unshare")
            .args(["--net", "--mount", "sh", "-c"])
            .arg(format!("{PREPARE} && echo ready && exec cat"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(Error::start("unshare (package util-linux)"))?;
        let (Some(open), Some(stdout)) = (holder.stdin.take(), holder.stdout.take()) else {
            unreachable!("both were asked for as pipes")
        };
        let mut line = String::new();
        BufReader::new(stdout)
            .read_line(&mut line)
            .map_err(Error::file("read from", "unshare"))?;
        if line.trim() != "ready" {
            drop(open);
            let done = holder
                .wait_with_output()
                .map_err(Error::file("wait for", "unshare"))?;
            return Err(Error::failed(
                "unshare --net --mount (which takes root)",
                done.status,
                String::from_utf8_lossy(&done.stderr).trim(),
            ));
        }
        Ok(Namespace {
            holder,
            _open: open,
        })
    }

    /// As setns(2) takes it.
    pub(crate) fn path(&self) -> String {
        format!("/proc/{}/ns/net", self.holder.id())
    }

    /// A command that will run `program` in here.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        let holder = self.holder.id().to_string();
        command
            .args(["--net", "--mount", "--target", &holder, "--"])
            .arg(program);
        command
    }

    /// The same before everything else that runs on the machine (SCHED_FIFO): others' work must not
    /// look like ours. Each run is short, and others go on in between.
    pub(crate) fn urgent(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = self.command("chrt");
        command.args(["--fifo", "10"]).arg(program);
        command
    }

    /// The same, on one processor that is always the same: who takes turns there waits for nobody
    /// to wake up, so that what is left is what programs and kernel do.
    pub(crate) fn on_one_processor(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = self.urgent("taskset");
        let processor = first_processor();
        command.args(["-c", &processor]).arg(program);
        command
    }

    /// Only the network is this one's: /sys, with its control groups, is the machine's.
    pub(crate) fn in_its_network(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        let holder = self.holder.id().to_string();
        command
            .args(["--net", "--target", &holder, "--"])
            .arg(program);
        command
    }

    /// The same on the first processor.
    pub(crate) fn in_its_network_on_one_processor(
        &self,
        program: impl AsRef<std::ffi::OsStr>,
    ) -> Command {
        let mut command = self.in_its_network("taskset");
        command.args(["-c", &first_processor()]).arg(program);
        command
    }

    /// The same before everything else that runs on the machine (SCHED_FIFO), on one processor: each run is short, and
    /// waits for the other end most of the time.
    pub(crate) fn in_its_network_urgent_on(
        &self,
        processor: &str,
        program: impl AsRef<std::ffi::OsStr>,
    ) -> Command {
        let mut command = self.in_its_network("chrt");
        command.args(["--fifo", "10", "taskset", "-c", processor]);
        command.arg(program);
        command
    }

    pub(crate) fn ip(&self, words: &str) -> Result<()> {
        let mut command = self.command("ip");
        run(command.args(words.split_whitespace())).map(drop)
    }

    /// A cable: `here` in this namespace, `there` in `other`, which may be the same.
    pub(crate) fn cable(&self, here: &str, other: &Namespace, there: &str) -> Result<()> {
        let pid = other.holder.id();
        self.ip(&format!(
            "link add {here} type veth peer name {there} netns {pid}"
        ))?;
        for (namespace, name) in [(self, here), (other, there)] {
            namespace.ip(&format!("link set {name} up"))?;
        }
        Ok(())
    }

    /// Clients in here have enough ports for thousands of connections in each of many windows: those of one that is over are
    /// in TIME-WAIT for a minute.
    pub(crate) fn many_ports(&self) -> Result<()> {
        let set = "cd /proc/sys/net/ipv4 && echo 1024 65535 > ip_local_port_range && echo 1 > tcp_tw_reuse";
        run(self.command("sh").args(["-c", set])).map(drop)
    }

    pub(crate) fn address(&self, name: &str, address: &str) -> Result<()> {
        self.ip(&format!("address add {address}/24 dev {name}"))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// The first one that this process may use.
fn first_processor() -> String {
    processors().0
}

/// The first and the last one that this process may use.
pub(crate) fn processors() -> (String, String) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let list = list.unwrap_or("0").trim();
    let mut numbers = list.split([',', '-']);
    let first = numbers.next().unwrap_or("0");
    let last = numbers.next_back().unwrap_or(first);
    (first.into(), last.into())
}

/// A program that says on its first line that it is ready, and ends with its stdin.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    name: String,
    /// Where it listens, if it does.
    pub(crate) port: String,
}

impl Server {
    pub(crate) fn start(name: &str, mut command: Command) -> Result<Server> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(Error::start(name))?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            unreachable!("both were asked for as pipes")
        };
        let mut server = Server {
            child,
            stdin: Some(stdin),
            stdout: BufReader::new(stdout),
            name: name.into(),
            port: String::new(),
        };
        let line = server.line()?;
        match port_of(&line) {
            Some(port) => {
                server.port = port;
                Ok(server)
            }
            None => Err(server.end_badly()),
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.stdout
            .read_line(&mut line)
            .map_err(Error::file("read from", &self.name))?;
        Ok(line)
    }

    fn end_badly(&mut self) -> Error {
        let _ = self.child.kill();
        let mut said = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            let _ = std::io::Read::read_to_string(&mut stderr, &mut said);
        }
        let status = self.child.wait().map_or(String::new(), |s| s.to_string());
        Error::failed(self.name.clone(), status, crate::program::last_words(&said))
    }

    /// Gives it a line; returns the one that it answers.
    pub(crate) fn ask(&mut self, line: &str) -> Result<String> {
        let asked = self.stdin.as_mut().map(|stdin| writeln!(stdin, "{line}"));
        asked
            .transpose()
            .map_err(Error::file("write to", &self.name))?;
        match self.line()? {
            answer if answer.is_empty() => Err(self.end_badly()),
            answer => Ok(answer),
        }
    }

    /// Ends it; returns the line that it prints last.
    pub(crate) fn finish(mut self) -> Result<String> {
        drop(self.stdin.take());
        let line = self.line()?;
        let status = self
            .child
            .wait()
            .map_err(Error::file("wait for", &self.name))?;
        if status.success() {
            Ok(line)
        } else {
            Err(self.end_badly())
        }
    }
}

/// Of `ready`, `ready PORT`, or `{"type":"ready","listen":"HOST:PORT"…}`; none where nothing listens yet.
fn port_of(line: &str) -> Option<String> {
    if let Some(rest) = line.strip_prefix("ready") {
        return Some(rest.trim().into());
    }
    let said: serde_json::Value = serde_json::from_str(line).ok()?;
    let ready = said.get("type")? == "ready";
    let port = match said.get("listen")? {
        serde_json::Value::Null => String::new(),
        listen => listen.as_str()?.rsplit_once(':')?.1.to_owned(),
    };
    ready.then_some(port)
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
