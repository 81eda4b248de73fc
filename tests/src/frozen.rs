//! Targets that their control group keeps from running: nothing can be called in them.
use crate::recording::{Recording, command, summary};
use anyhow::{Context, Result, ensure};
use hopscope_tests::command::run;
use hopscope_tests::{Requirement, Suite, Target, cgroup2, compile_c, hopscope, mapped, scratch};
use nix::sys::signal::Signal;
use std::path::PathBuf;
use std::process::{Command, Stdio};

pub(crate) fn register(suite: &mut Suite) {
    let needs = &[Requirement::Gcc, Requirement::FreezingGroup];
    suite.case("frozen::at_the_end", needs, at_the_end);
    suite.case("frozen::at_the_beginning", needs, at_the_beginning);
}

/// Gone when dropped, with the processes in it thawed.
struct Group(PathBuf);

impl Group {
    fn around(target: &Target, name: &str) -> Result<Group> {
        let name = format!("hopscope-{name}-{}", std::process::id());
        let group = Group(cgroup2().context("control groups")?.join(name));
        std::fs::create_dir_all(&group.0)?;
        group.write("cgroup.procs", target.pid())?;
        Ok(group)
    }

    fn write(&self, file: &str, value: i32) -> Result<()> {
        std::fs::write(self.0.join(file), value.to_string()).context(file.to_owned())
    }

    fn freeze(&self) -> Result<()> {
        self.write("cgroup.freeze", 1)?;
        let events = self.0.join("cgroup.events");
        while !std::fs::read_to_string(&events)?.contains("frozen 1") {
            std::thread::yield_now();
        }
        Ok(())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = self.write("cgroup.freeze", 0);
        // Those in it go first: they belong to the group above.
        if let (Some(above), Ok(pids)) = (
            cgroup2(),
            std::fs::read_to_string(self.0.join("cgroup.procs")),
        ) {
            for pid in pids.lines() {
                let _ = std::fs::write(above.join("cgroup.procs"), pid);
            }
        }
        let _ = std::fs::remove_dir(&self.0);
    }
}

fn steady() -> Result<Target> {
    let program = compile_c(&["steady.c"], &["-O2"])?;
    Target::spawn(Command::new(program).stdout(Stdio::piped()))
}

fn maps_of_ours(target: &Target) -> Result<usize> {
    Ok(mapped::mapped(target.pid())?.len())
}

/// Who traces it and which signals it blocks: a system call that was never made leaves neither.
fn is_as_it_was(target: &Target) -> Result<()> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", target.pid()))?;
    for line in ["TracerPid:\t0", "SigBlk:\t0000000000000000"] {
        ensure!(status.contains(line), "no `{line}`: {status}");
    }
    Ok(())
}

fn ends_well(target: Target) -> Result<()> {
    target.signal(Signal::SIGTERM)?;
    let ended = target.output()?;
    let said = String::from_utf8_lossy(&ended.stdout);
    ensure!(ended.status.success() && said.contains("0 wrong"), "{said}");
    Ok(())
}

/// The functions are restored, what is mapped is said, with the command that takes it away later.
fn at_the_end() -> Result<()> {
    let target = steady()?;
    let group = Group::around(&target, "at-the-end")?;
    let dir = scratch();
    let (file, ready) = (dir.join("frozen.hop"), dir.join("frozen.ready"));
    let mut record = command(target.pid(), &["steady_mix"], &file);
    record
        .stdout(Stdio::piped())
        .arg("--ready-file")
        .arg(&ready);
    let recorder = Target::spawn_with_ready_file(&mut record, &ready)?;
    group.freeze()?;
    recorder.signal(Signal::SIGINT)?;
    let out = recorder.output()?;
    let said = String::from_utf8_lossy(&out.stdout);
    ensure!(out.status.code() == Some(1), "{}: {said}", out.status);
    let notes = summary(&said)?["notes"].to_string();
    let advice = format!("hopscope detach -p {}", target.pid());
    ensure!(
        notes.contains("is frozen") && notes.contains(&advice),
        "{notes}"
    );
    is_as_it_was(&target)?;

    let pid = target.pid().to_string();
    let detach = || hopscope(&["detach", "-p", &pid]);
    let still = detach()?.expect_code(1)?;
    ensure!(still.stdout.contains("is frozen"), "{still:?}");
    is_as_it_was(&target)?;
    ensure!(
        maps_of_ours(&target)? > 0,
        "something was called in a frozen process"
    );

    group.write("cgroup.freeze", 0)?;
    detach()?.expect_code(0)?;
    let left = maps_of_ours(&target)?;
    ensure!(left == 0, "{left} mappings are left");
    Recording::start(target.pid(), &["steady_mix"], &file)?.stop()?;
    ensure!(
        maps_of_ours(&target)? == 0,
        "mappings of the second recording are left"
    );
    ends_well(target)
}

fn at_the_beginning() -> Result<()> {
    let target = steady()?;
    let group = Group::around(&target, "at-the-beginning")?;
    group.freeze()?;
    let file = scratch().join("frozen-before.hop");
    let out = run(&mut command(target.pid(), &["steady_mix"], &file))?.expect_code(2)?;
    ensure!(
        out.stderr.contains("is frozen by its control group"),
        "{out:?}"
    );
    is_as_it_was(&target)?;
    ensure!(maps_of_ours(&target)? == 0, "something is mapped");
    group.write("cgroup.freeze", 0)?;
    ends_well(target)
}
