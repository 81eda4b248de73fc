//! A program by itself and with everything measured.
use crate::error::{Error, Result};
use serde::Serialize;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const LOOK_EVERY: Duration = Duration::from_millis(2);
/// What takes longer has hung.
const ENDS_WITHIN: Duration = Duration::from_secs(900);

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Ran {
    pub(super) wall_s: f64,
    /// `None`: ended by a signal, or it had to be; or what loads it failed.
    pub(super) exit_code: Option<i32>,
    pub(super) output: Vec<u8>,
    /// Until the file came that tells it.
    pub(super) ready_s: Option<f64>,
    /// `VmHWM` of proc_pid_status(5), looked at every 2 ms: of the program, or of a child that runs the same one, whichever
    /// is larger.
    pub(super) peak_rss_mib: f64,
    pub(super) ended_in_time: bool,
}

/// Runs `command` to its end, with what loads it if it is a server. `ready`: a file that it makes.
pub(super) fn to_its_end(
    command: &mut Command,
    load: Option<&mut Command>,
    dir: &Path,
    ready: &Path,
) -> Result<Ran> {
    let (stdout, stderr) = (dir.join("stdout"), dir.join("stderr"));
    let create = |path: &Path| File::create(path).map_err(Error::file("create", path));
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null());
    command.stdout(create(&stdout)?).stderr(create(&stderr)?);
    // Results of a debugger or a browser depend on these.
    command.env("LC_ALL", "C").env("HOME", dir).current_dir(dir);
    let start = Instant::now();
    let mut child = command.spawn().map_err(Error::start(&name))?;
    let loaded = dir.join("loaded");
    let beside = load.map(|load| {
        load.stdin(Stdio::null()).stdout(create(&loaded)?);
        load.env("LC_ALL", "C").current_dir(dir);
        load.spawn().map_err(Error::start("what loads it"))
    });
    let beside = beside.transpose()?;
    let (mut ready_s, mut peak_kib, mut ended_in_time) = (None, 0, true);
    let ended = loop {
        peak_kib = peak_kib.max(high_water_kib(child.id()));
        if ready_s.is_none() && ready.exists() {
            ready_s = Some(start.elapsed().as_secs_f64());
        }
        if let Some(ended) = child.try_wait().map_err(Error::file("wait for", &name))? {
            break ended;
        }
        if start.elapsed() > ENDS_WITHIN && ended_in_time {
            ended_in_time = false;
            child.kill().map_err(Error::file("end", &name))?;
        }
        std::thread::sleep(LOOK_EVERY);
    };
    // Of a server, what it answered; its own output has times.
    let (output, loaded_right) = match beside {
        None => (stdout, true),
        Some(mut load) => {
            let ended = load
                .wait()
                .map_err(Error::file("wait for", "what loads it"))?;
            (loaded, ended.success())
        }
    };
    Ok(Ran {
        wall_s: start.elapsed().as_secs_f64(),
        exit_code: ended.code().filter(|_| loaded_right),
        output: fs::read(&output).map_err(Error::file("read", &output))?,
        ready_s,
        peak_rss_mib: peak_kib as f64 / 1024.0,
        ended_in_time,
    })
}

/// Nothing of a process that has ended.
fn high_water_kib(pid: u32) -> u64 {
    let program = |pid: u32| fs::read_link(format!("/proc/{pid}/exe")).ok();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.unwrap_or_default();
    let children = children.split_whitespace().filter_map(|c| c.parse().ok());
    // A recorder below its guardian, but not what it records.
    let same = children.filter(|child| program(*child) == program(pid));
    let of = |pid: u32| {
        let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
        line.split_whitespace().next()?.parse().ok()
    };
    let all = std::iter::once(pid).chain(same);
    all.filter_map(of).max().unwrap_or(0)
}
