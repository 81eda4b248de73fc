//! Whatever ends it: no program, map, link or control group stays, and no byte is lost.
use super::scene::{ANYWAY, AT_ONCE, attached, dir, kill_keeper, program};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run as command;
use hopscope_tests::{Target, compile_c, hopscope_bin};
use nix::poll::poll;
use nix::sys::signal::Signal;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

/// Only what hangs is looked at so often.
const LOOKS: u32 = 2_000;
const LOOKS_FOR_HARM: u32 = 100;

/// A stream that has sent 100,000 bytes and read none.
struct Held {
    target: Target,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    own: BTreeSet<String>,
    group: PathBuf,
}

fn held() -> Result<Held> {
    let ready = dir().join("ready");
    let mut run = Command::new(hopscope_bin());
    run.args(["-q", "splice", "run", ANYWAY, AT_ONCE, "--ready-file"])
        .arg(&ready)
        .arg("--")
        .arg(program("stream")?)
        .arg("hold")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut target = Target::spawn_with_ready_file(&mut run, &ready)?;
    let stdin = target.child().stdin.take().context("stdin")?;
    let stdout = target.child().stdout.take().context("stdout")?;
    let mut stdout = BufReader::new(stdout);
    let mut line = String::new();
    stdout.read_line(&mut line)?;
    ensure!(line.contains("100000"), "{line}");
    let own = objects_of(target.pid())?;
    for kind in ["prog", "map", "link"] {
        let has = own.iter().any(|id| id.starts_with(kind));
        ensure!(has, "{own:?}");
    }
    let group = group_of(target.pid())?;
    Ok(Held {
        target,
        stdin,
        stdout,
        own,
        group,
    })
}

impl Held {
    fn next_line(&mut self) -> Result<String> {
        self.stdin.write_all(b"\n")?;
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        Ok(line)
    }

    fn expect_gone(&self) -> Result<()> {
        let objects = compile_c(&["slice/bpf_objects.c"], &["-O2", "-Wall"])?;
        for _ in 0..LOOKS {
            if !self.group.exists() && all(&objects)?.is_disjoint(&self.own) {
                return Ok(());
            }
            poll(&mut [], 5u8)?;
        }
        let left: Vec<_> = self.own.intersection(&all(&objects)?).cloned().collect();
        let group = self.group.exists();
        anyhow::bail!("left behind: {left:?}, {} {group}", self.group.display())
    }
}

/// Killed while bytes lie in the queue of a joined socket: they are read, the connection goes on as
/// plain TCP, and by then nothing is left in the kernel.
pub(super) fn killed() -> Result<()> {
    goes_on_without(held()?)
}

/// Its keeper was killed before: the next one does the same.
pub(super) fn killed_after_its_keeper() -> Result<()> {
    let mut held = held()?;
    let _stderr = kill_keeper(&mut held.target)?;
    goes_on_without(held)
}

fn goes_on_without(mut held: Held) -> Result<()> {
    held.target.child().kill()?;
    held.target.child().wait()?;
    // Time to do harm: whoever drops the map now drops the bytes.
    let objects = compile_c(&["slice/bpf_objects.c"], &["-O2", "-Wall"])?;
    for _ in 0..LOOKS_FOR_HARM {
        if all(&objects)?.is_disjoint(&held.own) {
            break;
        }
        poll(&mut [], 5u8)?;
    }
    let read = held.next_line()?;
    ensure!(read.contains("\"read\": 100000"), "{read}");
    held.expect_gone()?;
    let more = held.next_line()?;
    ensure!(more.contains("\"bytes\": 200000"), "{more}");
    Ok(())
}

/// The command's end is its end.
pub(super) fn ended() -> Result<()> {
    let mut held = held()?;
    for bytes in ["\"read\": 100000", "\"bytes\": 200000"] {
        let line = held.next_line()?;
        ensure!(line.contains(bytes), "{line}");
    }
    held.expect_gone()?;
    ensure!(held.target.wait()?.success(), "the command's end");
    Ok(())
}

/// A send whose way was chosen, and whose message is not in the other end's queue yet, when the accelerator ends
/// or is killed, or ends and its keeper is killed: the message arrives, and only then is anything released.
pub(super) fn under_way() -> Result<()> {
    for (is_killed, is_keepers) in [(false, false), (true, false), (false, true)] {
        let (mut attached, port) = attached(|attach| {
            attach
                .args(["-q", AT_ONCE, "--verify", "--json"])
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
        })?;
        let mut ends = Command::new(super::ends::built()?);
        ends.args(["stuck", &port])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut ends = Target::spawn_now(&mut ends)?;
        let stdout = ends.child().stdout.take().context("stdout")?;
        let mut stdin = ends.child().stdin.take().context("stdin")?;
        let mut stdout = BufReader::new(stdout);
        let mut line = String::new();
        stdout.read_line(&mut line)?;
        ensure!(line.contains("stuck"), "{line}");
        match is_killed {
            true => attached.child().kill()?,
            false => attached.signal(Signal::SIGINT)?,
        }
        let stderr = is_keepers.then(|| kill_keeper(&mut attached)).transpose()?;
        // Time to do harm.
        poll(&mut [], 1_000u16)?;
        stdin.write_all(b"\n")?;
        line.clear();
        stdout.read_line(&mut line)?;
        ensure!(
            line.contains("\"arrived\": 2"),
            "killed {is_killed}, its keeper {is_keepers}: {line}"
        );
        ensure!(ends.wait()?.success(), "its end");
        let out = attached.output()?;
        drop(stderr);
        if !is_killed {
            let last: serde_json::Value = serde_json::from_slice(&out.stdout)?;
            ensure!(
                last["connections"] == 1 && last["mismatched_directions"] == 0,
                "{last}"
            );
        }
    }
    Ok(())
}

/// `prog 12`, `map 3`, `link 4` behind the process's descriptors. Numbers are not given out again.
fn objects_of(pid: i32) -> Result<BTreeSet<String>> {
    let mut own = BTreeSet::new();
    for entry in std::fs::read_dir(format!("/proc/{pid}/fdinfo"))? {
        let text = std::fs::read_to_string(entry?.path())?;
        for line in text.lines() {
            let Some((key, id)) = line.split_once(":\t") else {
                continue;
            };
            if let Some(kind @ ("prog" | "map" | "link")) = key.strip_suffix("_id") {
                own.insert(format!("{kind} {id}"));
            }
        }
    }
    Ok(own)
}

fn all(objects: &Path) -> Result<BTreeSet<String>> {
    let out = command(&mut Command::new(objects))?.expect_code(0)?;
    let ids = out.stdout.lines().map(|line| {
        let end = line.rfind(' ').context("a name")?;
        Ok(line[..end].to_owned())
    });
    ids.collect()
}

/// That of the command: its name ends with the accelerator's process.
fn group_of(pid: i32) -> Result<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mounts")?;
    let root = mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (path, kind) = (words.next()?, words.next()?);
        (kind == "cgroup2").then(|| PathBuf::from(path))
    });
    let text = std::fs::read_to_string("/proc/self/cgroup")?;
    let home = text.lines().find_map(|line| line.strip_prefix("0::/"));
    let home = root.context("cgroup2")?.join(home.context("a group")?);
    let group = home.join(format!("hopscope-splice-{pid}"));
    ensure!(group.exists(), "no {}", group.display());
    Ok(group)
}
