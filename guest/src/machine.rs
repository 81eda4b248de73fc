//! The guest: its first file system, and its run.
use crate::accelerator::Accelerator;
use crate::archive::Archive;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::nic::Nic;
use crate::programs;
use crate::qemu::Machine;
use crate::said::{Run, read};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// Far above what was ever seen: against hanging only.
const STEP_SECONDS: u32 = 300;

/// Names of steps are numbered with two digits, and run in the order of their names.
const STEPS_MAX: usize = 100;

pub struct Guest {
    kernel: Kernel,
    archive: Archive,
    steps: Vec<String>,
    machine: Machine,
    step_seconds: u32,
    dir: PathBuf,
}

impl Guest {
    /// With `hopscope`, a shell and iproute2 in it. Files of the run go to `dir`.
    ///
    /// # Errors
    /// When a program of this machine cannot be read, or is missing.
    pub fn new(kernel: &Kernel, hopscope: &Path, dir: &Path) -> Result<Guest> {
        let mut archive = Archive::default();
        for place in ["/proc", "/sys", "/tmp", "/run", "/root", "/sbin"] {
            archive.directory(place);
        }
        // What the kernel opens for the first process, before there is a /dev.
        archive.character_device("/dev/console", 5, 1);
        std::fs::create_dir_all(dir).map_err(Error::file("create", dir))?;
        programs::add_basics(&mut archive)?;
        let hopscope = programs::without_debug(hopscope, dir)?;
        programs::add(&mut archive, &hopscope, "/bin/hopscope")?;
        let config = format!("/boot/config-{}", kernel.release);
        archive.copy(&kernel.config, &config)?;
        for module in &kernel.modules {
            let name = module.file_name().unwrap_or_default();
            archive.copy(module, &format!("/modules/{}", name.to_string_lossy()))?;
        }
        Ok(Guest {
            kernel: kernel.clone(),
            archive,
            steps: Vec::new(),
            machine: Machine::default(),
            step_seconds: STEP_SECONDS,
            dir: dir.to_owned(),
        })
    }

    /// A program of this machine at `place`, and its libraries where they are here.
    ///
    /// # Errors
    /// When the program or one of its libraries cannot be read.
    pub fn program(&mut self, path: &Path, place: &str) -> Result<()> {
        programs::add(&mut self.archive, path, place)
    }

    /// `place` is absolute; folders above it are made. Everybody may run the file.
    pub fn file(&mut self, place: &str, content: &[u8]) {
        self.archive.file(place, content);
    }

    /// A file of this machine.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn copy(&mut self, from: &Path, place: &str) -> Result<()> {
        self.archive.copy(from, place)
    }

    pub fn memory_mib(&mut self, mib: u32) {
        self.machine.memory_mib = mib;
    }

    pub fn processors(&mut self, count: u32) {
        self.machine.processors = count;
    }

    /// Of each step, in place of 300 seconds.
    pub fn step_seconds(&mut self, seconds: u32) {
        self.step_seconds = seconds;
    }

    /// Without this the machine is emulated.
    pub fn accelerator(&mut self, accelerator: Accelerator) {
        self.machine.accelerator = accelerator;
    }

    /// A third serial line, `/dev/ttyS2`, at whose other end is who connects to this socket, which QEMU makes. What
    /// the guest says before is gone.
    pub fn line(&mut self, socket: impl Into<PathBuf>) {
        self.machine.line = Some(socket.into());
    }

    /// A network device whose packets a back end carries: `eth0` for the first.
    ///
    /// # Errors
    /// When its driver cannot be read.
    pub fn nic(&mut self, nic: Nic) -> Result<()> {
        for (n, module) in self.kernel.nic_modules.iter().enumerate() {
            let name = module.file_name().unwrap_or_default();
            let place = format!("/nic/{n}-{}", name.to_string_lossy());
            self.archive.copy(module, &place)?;
        }
        self.machine.nics.push(nic);
        Ok(())
    }

    /// A step makes the machine boot again so often, and all of them begin again: nothing is left of the
    /// boots before. [`Run::boots`] says how many were seen.
    pub fn reboots(&mut self, count: u32) {
        self.machine.reboots = count;
    }

    /// A script that the guest's shell runs after those before it.
    pub fn step(&mut self, name: &str, script: &str) {
        let number = self.steps.len();
        assert!(number < STEPS_MAX, "the next step would come too early");
        let file = format!("/steps/{number:02}-{name}");
        self.archive.file(&file, script.as_bytes());
        self.steps.push(name.to_owned());
    }

    /// `wait` starts qemu, and waits for its end as long as it likes.
    ///
    /// # Errors
    /// When the guest does not come to its end with all steps, with the last lines it said.
    pub fn run(
        mut self,
        wait: impl FnOnce(Command) -> std::result::Result<ExitStatus, String>,
    ) -> Result<Run> {
        let seconds = self.step_seconds.to_string();
        let init = include_str!("init.sh").replace("STEP_SECONDS", &seconds);
        self.archive.file("/init", init.as_bytes());
        let file = |name: &str| self.dir.join(name);
        let (initrd, console, output) = (file("initrd"), file("console"), file("output"));
        std::fs::write(&initrd, self.archive.finish()).map_err(Error::file("write", &initrd))?;
        let qemu = self
            .machine
            .qemu(&self.kernel.image, &initrd, [&console, &output])?;
        let ended = wait(qemu);
        let bytes = std::fs::read(&output).unwrap_or_default();
        let why = match ended {
            Err(why) => format!("the guest hangs: {why}"),
            Ok(status) if !status.success() => format!("qemu: {status}"),
            Ok(_) => match read(&bytes, &self.steps, self.machine.reboots) {
                Ok(run) => {
                    // Large, and made of files that are there.
                    let _ = std::fs::remove_file(&initrd);
                    return Ok(run);
                }
                Err(error) => error.to_string(),
            },
        };
        Err(Error::Guest {
            why,
            console: last_lines(&std::fs::read(&console).unwrap_or_default()),
            steps: last_lines(&bytes),
        })
    }
}

const LAST_LINES: usize = 100;
const LINE_CHARS: usize = 200;

fn last_lines(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<String> = text
        .lines()
        .map(|line| line.trim_end().chars().take(LINE_CHARS).collect())
        .collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
}
