//! `--pair`: what it changes of others' threads is what they had again, whatever ends it.
use super::cpuset::Cpuset;
use super::scene::{ANYWAY, AT_ONCE, dir, keeper, kill_keeper, program};
use anyhow::{Context, Result, ensure};
use hopscope_tests::{Requirement, Suite, Target, hopscope_bin};
use nix::poll::poll;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

/// Only what hangs is looked at so often.
const LOOKS: u32 = 4_000;

pub(super) fn register(suite: &mut Suite) {
    use Requirement::{CpusetGroup, Gcc, Root, Splice};
    let here = &[Root, Splice, Gcc];
    suite.case("splice::pair_restores_at_its_end", here, || {
        restored(Ending::Interrupted)
    });
    suite.case("splice::pair_restores_when_killed", here, || {
        restored(Ending::Killed)
    });
    suite.case(
        "splice::pair_restores_when_its_keeper_was_killed",
        here,
        || restored(Ending::KeeperKilled),
    );
    suite.case("splice::pair_restores_at_a_connections_end", here, || {
        restored(Ending::Closed)
    });
    suite.case(
        "splice::pair_leaves_a_mask_that_was_set",
        here,
        set_meanwhile,
    );
    suite.case(
        "splice::pair_leaves_a_mask_set_to_what_it_is",
        here,
        set_to_the_same,
    );
    suite.case(
        "splice::pair_frees_what_placed_threads_make",
        here,
        made_meanwhile,
    );
    suite.case(
        "splice::pair_restores_what_is_made_after_a_kill",
        here,
        made_after_a_kill,
    );
    let cpuset = &[Root, Splice, Gcc, CpusetGroup];
    suite.case(
        "splice::pair_restores_where_a_group_has_moved_it",
        cpuset,
        moved_by_a_group,
    );
    suite.case(
        "splice::pair_does_not_hold_what_works_together",
        here,
        together,
    );
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Interrupted,
    Killed,
    KeeperKilled,
    /// First the connection, then the accelerator.
    Closed,
}

/// Two programs on one connection, and an accelerator that may place them.
struct Scene {
    attached: Target,
    /// They end with it.
    _turns: Target,
    _stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    server: Pid,
    client: Pid,
    before: CpuSet,
}

impl Scene {
    fn new(how: &str, options: &[&str]) -> Result<Scene> {
        let before = sched_getaffinity(Pid::from_raw(0))?;
        ensure!(count(&before) > 1, "this needs two processors");
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let port = port.port().to_string();
        let ready = dir().join("ready");
        let _ = std::fs::remove_file(&ready);
        let group = std::process::id().to_string();
        let mut attach = Command::new(hopscope_bin());
        attach
            .args([
                "-q", "splice", "attach", ANYWAY, AT_ONCE, "--json", "--pair",
            ])
            .args(options)
            .args(["--port", &port, "-p", &group, "--ready-file"])
            .arg(&ready)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let attached = Target::spawn_with_ready_file(&mut attach, &ready)?;
        let mut turns = Command::new(program("turns")?);
        turns
            .args([how, &port])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut turns = Target::spawn_now(&mut turns)?;
        let stdin = turns.child().stdin.take().context("stdin")?;
        let stdout = turns.child().stdout.take().context("stdout")?;
        let mut scene = Scene {
            attached,
            _turns: turns,
            _stdin: stdin,
            stdout: BufReader::new(stdout),
            server: Pid::from_raw(0),
            client: Pid::from_raw(0),
            before,
        };
        let line = scene.line()?;
        let (server, client) = line.split_once(' ').context(line.clone())?;
        scene.server = Pid::from_raw(server.parse()?);
        scene.client = Pid::from_raw(client.parse()?);
        Ok(scene)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }

    /// Where both are, once they are on one processor.
    fn placed(&self) -> Result<CpuSet> {
        for _ in 0..LOOKS {
            let [server, client] = [self.server, self.client].map(sched_getaffinity);
            let (server, client) = (server?, client?);
            // Counted when all is noted.
            let is_one = server == client && count(&server) == 1;
            if is_one && self.stat()?["pairs_placed"] == 1 {
                return Ok(server);
            }
            poll(&mut [], 5u8)?;
        }
        anyhow::bail!("not placed: {:?}", self.stat()?)
    }

    /// A process that the server makes now, with the mask that it has.
    fn born(&mut self, placed: &CpuSet) -> Result<Pid> {
        kill(self.server, Signal::SIGUSR1)?;
        let born = Pid::from_raw(self.line()?.parse()?);
        ensure!(
            sched_getaffinity(born)? == *placed,
            "it did not inherit the mask"
        );
        Ok(born)
    }

    fn stat(&self) -> Result<Value> {
        let pid = self.attached.pid().to_string();
        let out = hopscope_tests::hopscope(&["splice", "stat", "--json", "--of", &pid])?;
        Ok(serde_json::from_str(&out.expect_code(0)?.stdout)?)
    }

    fn wait_for_mask(&self, of: Pid, wanted: &CpuSet) -> Result<()> {
        for _ in 0..LOOKS {
            if sched_getaffinity(of)? == *wanted {
                return Ok(());
            }
            poll(&mut [], 5u8)?;
        }
        let now = sched_getaffinity(of)?;
        anyhow::bail!("{of} has {} processors of {}", count(&now), count(wanted))
    }

    /// Ends the accelerator in order; what it counted.
    fn finish(&mut self) -> Result<Value> {
        self.attached.signal(Signal::SIGINT)?;
        let stdout = self.attached.child().stdout.take().context("stdout")?;
        let summary = serde_json::from_reader(stdout)?;
        self.attached.child().wait()?;
        balanced(&summary)?;
        Ok(summary)
    }
}

fn count(set: &CpuSet) -> usize {
    let is_set = |n: &usize| set.is_set(*n) == Ok(true);
    (0..CpuSet::count()).filter(is_set).count()
}

/// Each time that threads were placed was undone, and counted once.
fn balanced(summary: &Value) -> Result<()> {
    let of = |name: &str| summary[name].as_u64().context(name.to_owned());
    ensure!(
        of("pairs_placed")? == of("pairs_undone")? + of("pairs_undone_slower")?,
        "{summary}"
    );
    Ok(())
}

/// A process that is made while its maker is placed inherits the mask, and is restored with it where the accelerator has not
/// looked meanwhile.
fn restored(ending: Ending) -> Result<()> {
    let mut scene = Scene::new("alternate", &["--pair-anyway"])?;
    let placed = scene.placed()?;
    scene.attached.signal(Signal::SIGSTOP)?;
    let born = scene.born(&placed)?;
    if ending != Ending::Killed {
        scene.attached.signal(Signal::SIGCONT)?;
    }
    let mut all = vec![scene.server, scene.client, born];
    match ending {
        Ending::Interrupted => {
            let summary = scene.finish()?;
            ensure!(summary["pairs_placed"] == 1, "{summary}");
            ensure!(summary["pair_masks_changed"] == 0, "{summary}");
        }
        Ending::Killed => {
            scene.attached.child().kill()?;
            scene.attached.child().wait()?;
        }
        Ending::KeeperKilled => {
            let keeper = keeper(scene.attached.pid())?;
            // `killall` and service managers signal it too; it ends with its accelerator.
            for signal in [Signal::SIGHUP, Signal::SIGINT, Signal::SIGTERM] {
                ensure!(catches(keeper, signal)?, "{signal} ends the keeper");
            }
            let _stderr = kill_keeper(&mut scene.attached)?;
            scene.attached.child().kill()?;
            scene.attached.child().wait()?;
        }
        Ending::Closed => {
            kill(scene.client, Signal::SIGKILL)?;
            all = vec![scene.server, born];
        }
    }
    for one in all {
        scene.wait_for_mask(one, &scene.before)?;
    }
    if ending == Ending::Closed {
        scene.finish()?;
    }
    Ok(())
}

/// proc(5): SigCgt, a bit for each signal from 1 on.
fn catches(process: Pid, signal: Signal) -> Result<bool> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = u64::from_str_radix(caught.context("SigCgt")?.trim(), 16)?;
    Ok(caught & (1 << (signal as u32 - 1)) != 0)
}

/// A thread that has set a mask itself keeps it, and is placed no more; the other one is restored.
fn set_meanwhile() -> Result<()> {
    let mut scene = Scene::new("alternate", &["--pair-anyway"])?;
    let placed = scene.placed()?;
    let mut own = CpuSet::new();
    let is_other =
        |n: &usize| scene.before.is_set(*n) == Ok(true) && placed.is_set(*n) == Ok(false);
    own.set(
        (0..CpuSet::count())
            .find(is_other)
            .context("another processor")?,
    )?;
    sched_setaffinity(scene.client, &own)?;
    scene.wait_for_mask(scene.server, &scene.before)?;
    ensure!(
        sched_getaffinity(scene.client)? == own,
        "it was overwritten"
    );
    let summary = scene.finish()?;
    ensure!(
        sched_getaffinity(scene.client)? == own,
        "it was overwritten"
    );
    ensure!(
        summary["pairs_placed"] == 1 && summary["pair_masks_changed"] == 1,
        "{summary}"
    );
    Ok(())
}

/// What a placed thread makes has other work to do; the pair stays.
fn made_meanwhile() -> Result<()> {
    let mut scene = Scene::new("alternate", &["--pair-anyway"])?;
    let placed = scene.placed()?;
    kill(scene.server, Signal::SIGUSR1)?;
    let born = Pid::from_raw(scene.line()?.parse()?);
    scene.wait_for_mask(born, &scene.before)?;
    ensure!(
        sched_getaffinity(scene.server)? == placed,
        "the pair was undone"
    );
    let summary = scene.finish()?;
    ensure!(
        summary["pairs_placed"] == 1 && summary["pair_masks_changed"] == 0,
        "{summary}"
    );
    Ok(())
}

/// `taskset` with the very mask that the accelerator has set: from then on it is the thread's own.
fn set_to_the_same() -> Result<()> {
    let mut scene = Scene::new("alternate", &["--pair-anyway"])?;
    let placed = scene.placed()?;
    sched_setaffinity(scene.client, &placed)?;
    scene.wait_for_mask(scene.server, &scene.before)?;
    let summary = scene.finish()?;
    ensure!(
        sched_getaffinity(scene.client)? == placed,
        "it was overwritten"
    );
    ensure!(summary["pair_masks_changed"] == 1, "{summary}");
    Ok(())
}

/// A placed thread goes on to make others when the accelerator is gone and its keeper has not looked yet.
fn made_after_a_kill() -> Result<()> {
    let mut scene = Scene::new("alternate", &["--pair-anyway"])?;
    let placed = scene.placed()?;
    let keeper = keeper(scene.attached.pid())?;
    // Else the kernel resumes it when its parent ends (SIGHUP, SIGCONT: a process group without a parent in its session).
    nix::sys::prctl::set_child_subreaper(true)?;
    kill(keeper, Signal::SIGSTOP)?;
    scene.attached.child().kill()?;
    scene.attached.child().wait()?;
    let born = scene.born(&placed)?;
    kill(keeper, Signal::SIGCONT)?;
    for one in [scene.server, scene.client, born] {
        scene.wait_for_mask(one, &scene.before)?;
    }
    Ok(())
}

/// A control group takes the processor away, on which a thread was placed, and gives it back.
fn moved_by_a_group() -> Result<()> {
    let mut scene = Scene::new("alternate", &["--pair-anyway"])?;
    let placed = scene.placed()?;
    let is_other =
        |n: &usize| scene.before.is_set(*n) == Ok(true) && placed.is_set(*n) == Ok(false);
    let other = (0..CpuSet::count()).find(is_other).context("another one")?;
    let group = Cpuset::new(&other.to_string())?;
    group.take(scene.client)?;
    scene.wait_for_mask(scene.server, &scene.before)?;
    group.set_processors(&Cpuset::parents()?)?;
    scene.wait_for_mask(scene.client, &scene.before)?;
    let summary = scene.finish()?;
    for one in [scene.server, scene.client] {
        scene.wait_for_mask(one, &scene.before)?;
    }
    ensure!(summary["pair_masks_changed"] == 0, "{summary}");
    Ok(())
}

/// Two that need a processor each are not held on one: if they are placed at all, it is undone.
fn together() -> Result<()> {
    let mut scene = Scene::new("together", &[])?;
    let messages = |stat: &Value| stat["direct_messages"].as_u64().unwrap_or(0);
    let enough = messages(&scene.stat()?) + 1_000;
    while messages(&scene.stat()?) < enough {
        poll(&mut [], 20u8)?;
    }
    for of in [scene.server, scene.client] {
        scene.wait_for_mask(of, &scene.before)?;
    }
    scene.finish()?;
    Ok(())
}
