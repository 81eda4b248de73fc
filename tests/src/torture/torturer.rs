//! The target program, and what must hold of it when nobody measures it any more.
use anyhow::{Context, Result, ensure};
use hopscope_tests::mapped::{descriptors, mapped};
use hopscope_tests::{Target, compile};
use nix::sys::signal::Signal;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const SOURCES: [&str; 5] = [
    "torture/torture.c",
    "torture/work.c",
    "torture/simple_modes.c",
    "torture/thread_modes.c",
    "torture/waiting_mode.c",
];

/// What its threads do.
pub(super) const MODES: [&str; 8] = [
    "spinning",
    "sleeping",
    "waiting",
    "forking",
    "raw_cloning",
    "threading",
    "signalling",
    "loading",
];

pub(super) struct Torturer {
    pub(super) target: Target,
    pub(super) mode: &'static str,
}

impl Torturer {
    pub(super) fn start(mode: &'static str) -> Result<Torturer> {
        Torturer::start_with(mode, &[])
    }

    /// It answers `rdpmc`.
    pub(super) fn start_counting(mode: &'static str) -> Result<Torturer> {
        Torturer::start_with(
            mode,
            &[("LD_PRELOAD", crate::counted::program::emulator()?)],
        )
    }

    fn start_with(mode: &'static str, variables: &[(&str, PathBuf)]) -> Result<Torturer> {
        let headers = crate::headers("torture")?;
        let flags = ["-O2", "-g", "-pthread", "-ldl", &headers];
        let program = compile("gcc", &SOURCES, &flags)?;
        let plug_in = compile(
            "gcc",
            &["torture/work.c"],
            &["-O2", "-g", "-shared", "-fPIC", &headers],
        )?;
        let mut command = Command::new(program);
        command.arg(mode).arg(plug_in).stdout(Stdio::piped());
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        Ok(Torturer {
            target: Target::spawn(&mut command)?,
            mode,
        })
    }

    /// A program of its own, which is what `name` says that it is when it ends.
    pub(super) fn start_program(source: &str, name: &'static str) -> Result<Torturer> {
        let source = format!("torture/{source}");
        let program = compile("gcc", &[&source], &["-O2", "-pthread"])?;
        let mut command = Command::new(program);
        Ok(Torturer {
            target: Target::spawn(command.stdout(Stdio::piped()))?,
            mode: name,
        })
    }

    pub(super) fn pid(&self) -> i32 {
        self.target.pid()
    }

    /// What `maps` says of us: executable and other mappings of our memfds.
    pub(super) fn leftovers(&self) -> Result<(usize, usize)> {
        let ours = mapped(self.pid())?;
        let code = ours.iter().filter(|m| m.executable).count();
        Ok((code, ours.len() - code))
    }

    /// No descriptor of ours is open in it.
    pub(super) fn no_descriptors(&self) -> Result<()> {
        let open = descriptors(self.pid())?;
        ensure!(open.is_empty(), "left open: {open:?}");
        Ok(())
    }

    /// The code that runs is the file's, byte for byte.
    pub(super) fn text_is_original(&self) -> Result<()> {
        let pid = self.pid();
        let exe = std::fs::read_link(format!("/proc/{pid}/exe"))?;
        let (memory, file) = (File::open(format!("/proc/{pid}/mem"))?, File::open(&exe)?);
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps"))?;
        let mut compared = 0;
        for line in maps
            .lines()
            .filter(|line| line.ends_with(&*exe.to_string_lossy()))
        {
            let fields: Vec<&str> = line.split_whitespace().collect();
            if !fields[1].contains('x') {
                continue;
            }
            let (from, to) = fields[0].split_once('-').context("a range")?;
            let (from, to) = (u64::from_str_radix(from, 16)?, u64::from_str_radix(to, 16)?);
            let offset = u64::from_str_radix(fields[2], 16)?;
            let mut running = vec![0; (to - from) as usize];
            memory.read_exact_at(&mut running, from)?;
            let mut stored = vec![0; running.len()];
            // The last page is longer than the file's part.
            let read = file.read_at(&mut stored, offset)?;
            let wrong = running[..read]
                .iter()
                .zip(&stored[..read])
                .position(|(a, b)| a != b);
            ensure!(
                wrong.is_none(),
                "the code at {:#x} differs",
                from + wrong.unwrap_or(0) as u64
            );
            compared += read;
        }
        ensure!(compared >= 4096, "only {compared} bytes of code compared");
        Ok(())
    }

    /// Its threads are still there, it ends when it is told to, and every sum was right.
    pub(super) fn finish(self) -> Result<()> {
        self.target.signal(Signal::SIGTERM)?;
        let out = self.target.output()?;
        let said = String::from_utf8_lossy(&out.stdout);
        let right = said.starts_with(self.mode) && said.trim_end().ends_with(" 0 wrong, gs 0");
        ensure!(
            out.status.success() && right,
            "the target: {}, said {said:?}",
            out.status
        );
        Ok(())
    }
}
