//! A virtual machine with another kernel: built for a proof, booted once, read to its end. Without
//! KVM: whatever machine this is, the guest's kernel has the hooks that this one may lack. Times in it
//! mean nothing; what happened, how often and in which order does.
use super::archive::Archive;
use super::programs;
use super::said::{Run, read};
use anyhow::{Context, Result, bail};
use hopscope_tests::{Target, paths, scratch};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Each far above what was ever seen (a whole run: 4 to 75 s): against hanging only.
const GUEST_WATCHDOG: Duration = Duration::from_secs(840);
const STEP_SECONDS: &str = "300";

pub(super) struct Guest {
    archive: Archive,
    steps: Vec<&'static str>,
}

impl Guest {
    /// # Errors
    /// When a program of this machine cannot be read.
    pub(super) fn new() -> Result<Guest> {
        let mut archive = Archive::default();
        for place in ["/proc", "/sys", "/tmp", "/run", "/root", "/sbin"] {
            archive.directory(place);
        }
        // What the kernel opens for the first process, before there is a /dev.
        archive.character_device("/dev/console", 5, 1);
        let init = include_str!("init.sh").replace("STEP_SECONDS", STEP_SECONDS);
        archive.file("/init", init.as_bytes());
        programs::add_basics(&mut archive)?;
        let kernel = paths::vm_kernel().map_err(anyhow::Error::msg)?;
        let config = format!("/boot/config-{}", kernel.release);
        archive.copy(&kernel.config, &config)?;
        for module in &kernel.modules {
            let name = module.file_name().context("a module has a name")?;
            archive.copy(module, &format!("/modules/{}", name.to_string_lossy()))?;
        }
        Ok(Guest {
            archive,
            steps: Vec::new(),
        })
    }

    /// # Errors
    /// When the program or one of its libraries cannot be read.
    pub(super) fn program(&mut self, path: &Path, place: &str) -> Result<()> {
        programs::add(&mut self.archive, path, place)
    }

    pub(super) fn file(&mut self, place: &str, content: &[u8]) {
        self.archive.file(place, content);
    }

    /// A script that the guest's shell runs after those before it.
    pub(super) fn step(&mut self, name: &'static str, script: &str) {
        let number = self.steps.len();
        self.archive
            .file(&format!("/steps/{number:02}-{name}"), script.as_bytes());
        self.steps.push(name);
    }

    /// # Errors
    /// When the guest does not come to its end with all steps, with the last lines it said.
    pub(super) fn run(self) -> Result<Run> {
        let dir = scratch();
        let (initrd, console, output) =
            (dir.join("initrd"), dir.join("console"), dir.join("output"));
        std::fs::write(&initrd, self.archive.finish())?;
        let mut qemu = Command::new("qemu-system-x86_64");
        // With two processors a guest without KVM is slower, and far less regular. microvm does not
        // boot Debian's kernel.
        qemu.args(["-M", "q35", "-accel", "tcg", "-cpu", "max", "-smp", "1"])
            .args(["-m", "512", "-nodefaults", "-display", "none", "-no-reboot"])
            .arg("-serial")
            .arg(format!("file:{}", console.display()))
            .arg("-serial")
            .arg(format!("file:{}", output.display()))
            .arg("-kernel")
            .arg(paths::vm_kernel().map_err(anyhow::Error::msg)?.image)
            .arg("-initrd")
            .arg(&initrd)
            .args(["-append", "console=ttyS0 quiet panic=-1"])
            .stdin(Stdio::null());
        let mut machine = Target::spawn_now(&mut qemu)?;
        let ended = machine.wait_at_most(GUEST_WATCHDOG);
        drop(machine);
        let (said, bytes) = (last_lines(&console), std::fs::read(&output));
        let run = match (ended, bytes) {
            (Err(error), _) => Err(error.context("the guest hangs")),
            (Ok(status), _) if !status.success() => bail!("qemu: {status}"),
            (Ok(_), Err(error)) => Err(error).context("the guest said nothing"),
            (Ok(_), Ok(bytes)) => read(&bytes, &self.steps),
        };
        run.map_err(|error| {
            let progress = last_lines(&output);
            error.context(format!("console:\n{said}\nsteps:\n{progress}\n"))
        })
    }
}

const LAST_LINES: usize = 100;
const LINE_CHARS: usize = 200;

fn last_lines(file: &Path) -> String {
    let bytes = std::fs::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<String> = text
        .lines()
        .map(|line| line.trim_end().chars().take(LINE_CHARS).collect())
        .collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
}
