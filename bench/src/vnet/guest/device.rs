//! The devices of the guest: each has a back end of its own, with other policies.
use crate::error::{Error, Result};
use crate::load::network::{Namespace, processors};
use crate::vnet::Bench;
use crate::vnet::process::End;
use serde::Serialize;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Policy {
    pub(super) name: &'static str,
    /// What the guest's driver, which is as it is, is asked for.
    pub(super) kicks: &'static str,
    /// Of both queues.
    pub(super) calls: &'static str,
}

const fn policy(name: &'static str, kicks: &'static str, calls: &'static str) -> Policy {
    Policy { name, kicks, calls }
}

/// For each packet, unless the flag of the ring says not to: what the others are set against.
pub(super) const EACH: &str = "each";
pub(super) const PLAIN: &str = "plain";
/// What `vnet serve` does by default.
pub(super) const BATCH: &str = "batch";
pub(super) const EVENT_IDX: &str = "event-idx";
pub(super) const TAM: &str = "tam";
pub(super) const ADAPTIVE: &str = "adaptive";
pub(super) const DEFER: &str = "defer";

/// As many as have interrupt lines alike: without MSI-X QEMU's machine has four for such devices, two for each.
pub(super) const POLICIES: [Policy; 8] = [
    policy(EACH, "flags", "suppress"),
    policy(PLAIN, "flags", "plain"),
    policy(EVENT_IDX, "event-idx", "event-idx"),
    policy(BATCH, "event-idx", "batch"),
    policy(TAM, "event-idx", "tam"),
    policy("ahc", "event-idx", "ahc:50:64"),
    policy(ADAPTIVE, "adaptive", "adaptive"),
    policy(DEFER, "defer:8:4000", "batch"),
];

/// Those that are measured, by their place.
pub(super) fn chosen(quick: bool) -> Vec<usize> {
    let left_out: &[&str] = if quick { &[PLAIN, EVENT_IDX] } else { &[] };
    let all = POLICIES.iter().enumerate();
    all.filter(|(_, policy)| !left_out.contains(&policy.name))
        .map(|(n, _)| n)
        .collect()
}

/// Its place among [`POLICIES`].
pub(super) fn number_of(name: &str) -> Option<usize> {
    POLICIES.iter().position(|policy| policy.name == name)
}

/// The back end of one of them, in the namespace of those who answer.
pub(super) struct Device {
    pub(super) end: End,
    control: PathBuf,
}

/// Of the guest's end of device `n`, and of this one.
pub(super) fn address(n: usize, end: u8) -> String {
    format!("10.9.{n}.{end}")
}

/// A TAP device that stays when its back end goes.
pub(super) fn make_tap(namespace: &Namespace, n: usize) -> Result<()> {
    let tap = format!("near{n}");
    namespace.ip(&format!("tuntap add {tap} mode tap"))?;
    // As the guest knows it.
    namespace.ip(&format!("link set {tap} address 02:00:00:00:09:{n:02x} up"))?;
    namespace.address(&tap, &address(n, 1))?;
    namespace.ip(&format!(
        "neigh replace {} lladdr 52:54:00:00:00:{n:02x} dev {tap} nud permanent",
        address(n, 2)
    ))
}

pub(super) fn socket(files: &Path, n: usize) -> PathBuf {
    files.join(format!("s{n}"))
}

impl Device {
    pub(super) fn start(
        bench: &Bench<'_, '_>,
        namespace: &Namespace,
        n: usize,
        offload: bool,
    ) -> Result<Device> {
        let policy = POLICIES[n];
        let (first, _) = processors();
        let mut command = Command::new("taskset");
        command.args(["-c", &first]).arg(&bench.settings.hopscope);
        command.args(["vnet", "serve", "--socket"]);
        command.arg(socket(&bench.files, n));
        let control = bench.files.join(format!("c{n}"));
        command.arg("--control").arg(&control);
        command.args(["--tap", &format!("near{n}"), "--netns", &namespace.path()]);
        command.args(["--kick-policy", policy.kicks]);
        command.args(["--tx-call-policy", policy.calls]);
        command.args(["--rx-call-policy", policy.calls]);
        if !offload {
            command.arg("--no-offload");
        }
        let end = End::start("serve", &bench.files, command)?;
        Ok(Device { end, control })
    }

    /// What it has counted so far.
    pub(super) fn counts(&self) -> Result<Value> {
        let wrong = Error::file("ask", &self.control);
        let asked = || -> std::io::Result<String> {
            let mut stream = UnixStream::connect(&self.control)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.write_all(b"{\"do\":\"stat\"}\n")?;
            let mut answer = String::new();
            BufReader::new(stream).read_line(&mut answer)?;
            Ok(answer)
        };
        let line = asked().map_err(wrong)?;
        serde_json::from_str(&line)
            .map_err(|_| Error::no_summary("the back end's control socket", line))
    }
}

/// Of a back end that is busy with packets.
const PATIENCE: Duration = Duration::from_secs(10);
