//! A `stack serve` for programs, and what is left in it when they are gone.
use super::super::running::{PRELOADED, cable, frames, over_the_cable};
use crate::stack::cable::{Way, namespace};
use crate::stack::serving::Serving;
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::hopscope_bin;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Instant;

pub(crate) use super::super::running::WATCHDOG;

/// Of instances that are started in this process.
static ENGINES: AtomicU16 = AtomicU16::new(1);

/// `case` with instances of two engines.
pub(super) fn on_two_engines(case: &dyn Fn() -> Result<()>) -> Result<()> {
    ENGINES.store(2, Ordering::Relaxed);
    case()
}

/// Of all engines of a summary, the sum at this path.
pub(crate) fn of_all_engines(summary: &Value, path: &str) -> Result<u64> {
    let engines = summary["engines"].as_array();
    let counts = engines
        .with_context(|| format!("no engines in {summary}"))?
        .iter();
    let counts = counts.map(|engine| engine.pointer(path).and_then(Value::as_u64));
    let sum: Option<u64> = counts.sum();
    sum.with_context(|| format!("no {path} in {summary}"))
}

pub(crate) struct Instance {
    serving: Serving,
    /// `--if=PORT`
    port: &'static str,
    socket: PathBuf,
    /// Descriptors that it has without programs.
    own: usize,
    /// Frames that came before it.
    before: u64,
}

impl Instance {
    /// With a cable of its own.
    pub(crate) fn start(more: &[&str]) -> Result<Instance> {
        cable()?;
        // Names of sockets have 107 bytes at most (unix(7)), and a scratch directory may be deep.
        let name = format!("hopscope-{}.stack", std::process::id());
        let socket = std::env::temp_dir().join(name);
        Instance::at(socket, more)
    }

    /// Of several engines.
    pub(super) fn of_engines(engines: u16) -> Result<Instance> {
        ENGINES.store(engines, Ordering::Relaxed);
        Instance::start(&[])
    }

    /// The same, its socket in a directory of its own below one of this process's, which the caller removes.
    pub(super) fn start_in(folder: &Path) -> Result<Instance> {
        cable()?;
        std::fs::create_dir_all(folder)?;
        Instance::at(folder.join("s"), &[])
    }

    /// Killed, and another one in its place.
    pub(super) fn again(self) -> Result<Instance> {
        let Instance {
            serving, socket, ..
        } = self;
        drop(serving);
        Instance::at(socket, &[])
    }

    fn at(socket: PathBuf, more: &[&str]) -> Result<Instance> {
        let at = format!("--socket={}", socket.display());
        let engines = format!("--engines={}", ENGINES.load(Ordering::Relaxed));
        let arguments = [&[at.as_str()], more].concat();
        let before = frames()?;
        let serving = Serving::of_engines(Way::Packet, &engines, &arguments)?;
        Instance::of(serving, Way::Packet, socket, before)
    }

    /// On another device, in a namespace of its own.
    pub(super) fn on(way: Way) -> Result<Instance> {
        namespace()?;
        way.make()?;
        let name = format!("hopscope-{}.stack", std::process::id());
        let socket = std::env::temp_dir().join(name);
        let at = format!("--socket={}", socket.display());
        let serving = Serving::start(way, &[&at])?;
        Instance::of(serving, way, socket, 0)
    }

    fn of(serving: Serving, way: Way, socket: PathBuf, before: u64) -> Result<Instance> {
        let arguments = way.arguments();
        let mut instance = Instance {
            serving,
            port: arguments.first().context("a port")?,
            socket,
            own: 0,
            before,
        };
        instance.own = instance.descriptors()?.len();
        Ok(instance)
    }

    /// `hopscope stack run --mode pipeline OWN -- PROGRAM`
    pub(crate) fn run(&self, own: &[&str], program: &[&str]) -> Command {
        let mut command = Command::new(hopscope_bin());
        command
            .args(["stack", "run", "--mode=pipeline", self.port, "--socket"])
            .arg(&self.socket)
            .args(own)
            .arg("--")
            .args(program)
            .envs(PRELOADED.get().cloned().unwrap_or_default())
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn socket(&self) -> &str {
        self.socket.to_str().unwrap_or_default()
    }

    pub(super) fn engines(&self) -> u16 {
        ENGINES.load(Ordering::Relaxed)
    }

    pub(crate) fn pid(&self) -> i32 {
        self.serving.pid()
    }

    /// How often it has slept.
    pub(super) fn sleeps(&self) -> Result<u64> {
        Ok(self.serving.status("voluntary_ctxt_switches")?.parse()?)
    }

    pub(super) fn descriptors(&self) -> Result<Vec<String>> {
        let mut all = Vec::new();
        for entry in std::fs::read_dir(format!("/proc/{}/fd", self.pid()))? {
            // One that is closed meanwhile is none.
            let link = std::fs::read_link(entry?.path());
            all.extend(link.map(|link| link.display().to_string()));
        }
        Ok(all)
    }

    /// In memory.
    pub(super) fn resident_kib(&self) -> Result<u64> {
        let text = self.serving.status("VmRSS")?;
        let number = text.split_whitespace().next().context("no number")?;
        Ok(number.parse()?)
    }

    fn asked(&self, what: &str) -> Result<Value> {
        let control = self.serving.control();
        let words = ["stack", what, "--json", "--control", control];
        let out = run(Command::new(hopscope_bin()).args(words))?.expect_code(0)?;
        Ok(serde_json::from_str(&out.stdout)?)
    }

    /// Of `stack stats`.
    pub(super) fn stats(&self) -> Result<Value> {
        self.asked("stats")
    }

    /// Of `stack ss`: in each state so many.
    fn states(&self) -> Result<Vec<String>> {
        let answer = self.asked("ss")?;
        let engines = answer["engines"].as_array();
        let mut states = Vec::new();
        for engine in engines.with_context(|| answer.to_string())? {
            let rows = engine["connections"].as_array();
            let state = |row: &Value| row["state"].as_str().unwrap_or_default().to_owned();
            states.extend(rows.with_context(|| answer.to_string())?.iter().map(state));
        }
        Ok(states)
    }

    /// As [`Instance::has_nothing_left`], after more than so many frames for an address that is on no device.
    pub(crate) fn ends(self, least: u64) -> Result<Value> {
        over_the_cable(self.before, least)?;
        let summary = self.has_nothing_left()?;
        let segments = of_all_engines(&summary, "/counters/Tcp/InSegs")?;
        ensure!(segments > least / 2, "{segments} segments in {summary}");
        Ok(summary)
    }

    /// Its programs are gone: it has no socket, no descriptor and no byte of theirs. Then it is stopped: its summary.
    pub(crate) fn has_nothing_left(self) -> Result<Value> {
        // Descriptors first: who asks for states is a client for a while.
        let started = Instant::now();
        loop {
            let descriptors = self.descriptors()?;
            if descriptors.len() <= self.own {
                break;
            }
            ensure!(
                started.elapsed() < WATCHDOG,
                "{descriptors:?}, {} before",
                self.own
            );
            std::thread::yield_now();
        }
        loop {
            let states = self.states()?;
            if states.iter().all(|state| state == "TIME-WAIT") {
                break;
            }
            ensure!(started.elapsed() < 2 * WATCHDOG, "{states:?}");
        }
        let summary = self.serving.stop()?;
        ensure!(!self.socket.exists(), "its socket is left behind");
        for left in ["/counters/Tcp/CurrEstab", "/memory/buffer_bytes"] {
            ensure!(of_all_engines(&summary, left)? == 0, "{left}: {summary}");
        }
        Ok(summary)
    }
}
